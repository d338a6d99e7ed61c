"""Exports of Qlik, written by hand after the published structure of their files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

LANDING = """\
properties: {name: Orders Landing, id: orders_landing-a1b2, type: LAKE_LANDING}
settings:
  landingAppRuntime: {tableLoadInParallel: 8, changeProcessingInterval: 30}
  maximumLobSize: 64
"""
SELECTION = """\
sourceConnection: '{{task.orders_landing-a1b2.sourceConnection}}'
explicitlySelected:
  - {name: orders, schema: '{{task.orders_landing-a1b2:schema}}', type: TABLE}
  - {name: customers, schema: '{{task.orders_landing-a1b2:schema}}', type: TABLE}
includePatterns:
  - {schemaPattern: sales, tablePattern: 'line%', type: TABLE}
excludePatterns:
  - {schemaPattern: sales, tablePattern: 'tmp%', type: TABLE}
"""
STORAGE = """\
properties: {name: orders, id: orders-c3d4, type: LAKEHOUSE_STORAGE, description: All orders}
settings:
  artifactsLocation:
    taskSchema: '{{task.orders-c3d4.taskSchema}}'
    internalSchema: orders_raw
  artifactsSettings: {historyEnabled: true, artifactsPrefix: s_, reloadType: COMPARE_AND_APPLY}
  ddlHandlingPolicy: {addColumn: IGNORE, dropColumn: APPLY_TO_TARGET}
  taskRuntime: {lakehouseCluster: cluster-1}
"""
STORAGE_RULES = """\
rules:
  - actionType: RENAME_COLUMN
    ordinal: 1
    name: small letters
    action: {renameType: TO_LOWER, value: ''}
  - actionType: ADD_COLUMN
    ordinal: 2
    scope: {whereTableName: orders}
    action:
      column: {name: label}
      expression:
        expressionStatement: "upper(${STATUS}) || '-' || ${ID}"
        alias: [{name: STATUS, value: STATUS}, {name: ID, value: ID}]
  - actionType: ADD_COLUMN
    ordinal: 3
    action:
      column: {name: week}
      expression: {expressionStatement: "week_of_fiscal_year(${DAY})"}
"""
CUSTOMERS = """\
properties:
  id: customers-x1
  name: customers
  inputDatasets: [{datasetId: customers, taskId: orders_landing-a1b2}]
  datasetAttributes: {hasHistory: 'OFF'}
transformations:
  columnTransformations:
    - {action: DROP, columnName: notes}
    - {action: KEEP, columnName: fullname, newColumnName: customer}
    - {action: KEEP, columnName: mail, hash: true}
"""
ORDERS = """\
properties:
  id: orders-x2
  name: orders
  inputDatasets: [{datasetId: orders, taskId: orders_landing-a1b2}]
"""
TRANSFORM = """\
properties: {name: reporting, id: reporting-e5f6, type: TRANSFORM}
settings: {artifactsLocation: {taskSchema: reporting}}
"""
TOTALS = """\
properties:
  id: totals-y1
  name: totals
  inputDatasets: [{datasetId: orders-x2, name: orders, taskId: orders-c3d4}]
  tableDef:
    name: totals
    columns:
      - {name: customer_id, ordinal: 1, primaryKeyOrdinal: 1}
      - {name: orders, ordinal: 2}
  customDatasetSettings:
    customSql:
      expressionStatement: >-
        SELECT customer_id, count(*) AS orders FROM ${ORDERS} o
        WHERE o.status <> 'cancelled' GROUP BY customer_id ORDER BY customer_id
      alias: [{name: ORDERS, value: 'x$_$orders-c3d4$_$orders-x2'}]
    incremental: false
"""
SCHEDULE = """\
scheduling:
  - schedulingType: TIME_BASED
    timeBasedScheduling: {schedule: ['RRULE:FREQ=HOURLY;INTERVAL=6'], timezone: Etc/UTC}
"""
MART = """\
properties: {name: mart, id: mart-g7h8, type: DATAMART}
"""
DIMENSION = """\
properties:
  id: dim_customer-z1
  name: dim_customer
  inputDatasets: [{datasetId: customers-x1, name: customers, taskId: orders-c3d4}]
  dimensionDatasetSettings:
    type: TYPE1
    rootDataEntityId: {datasetId: customers-x1, name: customers, taskId: orders-c3d4}
    mapping:
      columns:
        - {columnName: id, type: ROOT_PK, expression: {expressionStatement: '${id}'}}
        - {columnName: customer, type: NONE, expression: {expressionStatement: '${customer}'}}
"""
FACT = """\
properties:
  id: fact_orders-z2
  name: fact_orders
  inputDatasets: [{datasetId: orders-x2, name: orders, taskId: orders-c3d4}]
  factDatasetSettings:
    type: TRANSACTIONAL
    rootDataEntityId: {datasetId: orders-x2, name: orders, taskId: orders-c3d4}
    factDimension:
      - {name: dim_customer, dimension: {datasetId: dim_customer-z1, taskId: mart-g7h8}}
    mapping:
      columns:
        - {columnName: id, type: ROOT_PK, expression: {expressionStatement: '${id}'}}
        - {columnName: amount, type: NONE, expression: {expressionStatement: '${amount}'}}
"""
MODEL = """\
relationships:
  - id: orders_customers
    sourceEntity: {datasetId: orders-x2, name: orders, taskId: orders-c3d4}
    targetEntity: {datasetId: customers-x1, name: customers, taskId: orders-c3d4}
    columnRelationships:
      - sourceColumn: customer_id
        targetColumn: id
        sourceColumnId: customer_id
        targetColumnId: id
"""
BINDINGS = {
    "variables": {
        "projectName": "Shop Orders",
        "task.orders_landing-a1b2.sourceConnection": "{{id(connection, Sales.shop_mysql)}}",
        "task.orders_landing-a1b2:schema": "sales",
        "task.orders-c3d4.taskSchema": "orders",
    },
    "connectionProperties": {"task.orders_landing-a1b2.sourceConnection": {"type": "repsrc_mysql"}},
}
PROJECT = """\
properties:
  name: '{{projectName}}'
  type: DATA_PIPELINE
  platformType: QLIK_OPEN_LAKEHOUSE
  space: '{{ref(project.current.spaceId)}}'
"""

FILES = {
    "qtcp_project.yaml": PROJECT,
    "bindings.json": json.dumps(BINDINGS, indent=1),
    "qtcp_tasks/Orders Landing/task.yaml": LANDING,
    "qtcp_tasks/Orders Landing/sourceSelection.yaml": SELECTION,
    "qtcp_tasks/orders/task.yaml": STORAGE,
    "qtcp_tasks/orders/transformationRules.yaml": STORAGE_RULES,
    "qtcp_tasks/orders/model.yaml": MODEL,
    "qtcp_tasks/orders/datasets/customers.yaml": CUSTOMERS,
    "qtcp_tasks/orders/datasets/orders.yaml": ORDERS,
    "qtcp_tasks/reporting/task.yaml": TRANSFORM,
    "qtcp_tasks/reporting/schedule.yaml": SCHEDULE,
    "qtcp_tasks/reporting/datasets/totals.yaml": TOTALS,
    "qtcp_tasks/mart/task.yaml": MART,
    "qtcp_tasks/mart/datasets/dim_customer.yaml": DIMENSION,
    "qtcp_tasks/mart/datasets/fact_orders.yaml": FACT,
}

REPLICATE = {
    "cmd.replication_definition": {
        "tasks": [
            {
                "task": {
                    "name": "HR to lake", "source_name": "HR source", "target_names": ["lake"],
                },
                "source": {
                    "rep_source": {"source_name": "HR source", "database_name": "HR source"},
                    "source_tables": {
                        "name": "HR source",
                        "explicit_included_tables": [
                            {"owner": "hr", "name": "people", "estimated_size": 10},
                            {"owner": "hr", "name": "jobs"},
                        ],
                    },
                },
                "targets": [{"rep_target": {"target_name": "lake", "database_name": "lake"}}],
                "manipulations": [
                    {
                        "name": "hr.people",
                        "table_manipulation": {
                            "owner": "hr",
                            "name": "people",
                            "fl_passthru_filter": "active = 1",
                            "transform_columns": [
                                {"column_name": "ssn", "action": "REMOVE"},
                                {
                                    "column_name": "label", "action": "ADD",
                                    "computation_expression": "upper($last) || ', ' || $first",
                                },
                                {
                                    "column_name": "region", "action": "ADD",
                                    "computation_expression":
                                        "source_lookup(10000,'hr','r','x','id=?',$id)",
                                },
                            ],
                        },
                    }
                ],
                "task_settings": {
                    "target_settings": {"default_schema": "hr"},
                    "common_settings": {"save_changes_enabled": True, "lob_max_size": 8},
                },
            }
        ],
        "databases": [
            {
                "name": "HR source",
                "role": "SOURCE",
                "type_id": "POSTGRESQL_COMPONENT_TYPE",
                "db_settings": {
                    "$type": "PostgresqlsourceSettings",
                    "server": "db.example.com",
                    "port": 5432,
                    "database": "hr",
                    "username": "replicator",
                    "password": "encrypted-hunter2",
                },
            }
        ],
    }
}  # fmt: skip


#: A capture and its tables.
SMALL = {path: text for path, text in FILES.items() if path.count("/") < 2} | {
    "qtcp_tasks/Orders Landing/task.yaml": LANDING,
    "qtcp_tasks/Orders Landing/sourceSelection.yaml": SELECTION,
    "qtcp_tasks/orders/task.yaml": STORAGE,
    "qtcp_tasks/orders/datasets/orders.yaml": ORDERS,
}


def write_export(
    folder: Path, files: Mapping[str, str] = MappingProxyType(FILES), **changed: str
) -> Path:
    """Write a project; `changed` has other texts of files by their paths."""
    for path, text in {**files, **changed}.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return folder


def write_replicate(file: Path, document: object = REPLICATE) -> Path:
    """Write an export of Replicate, with the first line that it writes."""
    text = json.dumps(document, indent=2)
    file.write_text(f"// Host name: replicate01, Task name: HR\n{text}\n", encoding="utf-8")
    return file
