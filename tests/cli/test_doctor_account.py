"""`polynya doctor --aws`: what the account allows, before anything is deployed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from polynya.cli.doctor_aws import account_checks
from polynya.model.config.aws import AwsAccess
from polynya.store.aws import account

OPEN = [{"Principal": {"DataLakePrincipalIdentifier": "IAM_ALLOWED_PRINCIPALS"}}]


@pytest.fixture
def checks(monkeypatch):
    def found(*, spot=5, on_demand=16, defaults=OPEN, refused=()):
        values = {account.SPOT_QUOTA: spot, account.ON_DEMAND_QUOTA: on_demand}

        def quota(**of):
            if "quota" in refused:
                answer = {"Error": {"Code": "AccessDeniedException", "Message": "no"}}
                raise ClientError(answer, "GetServiceQuota")
            if values[of["QuotaCode"]] is None:
                answer = {"Error": {"Code": "NoSuchResourceException", "Message": "default"}}
                raise ClientError(answer, "GetServiceQuota")
            return {"Quota": {"Value": float(values[of["QuotaCode"]])}}

        made = SimpleNamespace(
            get_service_quota=quota,
            get_aws_default_service_quota=lambda **_: {"Quota": {"Value": 5.0}},
            get_data_lake_settings=lambda: {
                "DataLakeSettings": {"CreateTableDefaultPermissions": defaults}
            },
        )
        monkeypatch.setattr(account, "client", lambda *_: made)
        return {check.name: check for check in account_checks(AwsAccess())}

    return found


def test_a_new_account_has_room_for_one_node(checks):
    found = checks(spot=None)

    assert found["spot quota"].status == "warn"
    assert "5 vCPU at once; a node of the default types has 4" in found["spot quota"].detail
    assert "L-34B43A08" in found["spot quota"].fix
    assert found["on-demand quota"].status == "ok"
    assert found["lake formation"].status == "ok"


def test_an_account_without_room_fails(checks):
    assert checks(spot=2)["spot quota"].status == "fail"


def test_closed_defaults_of_lake_formation_are_explained(checks):
    said = checks(defaults=[])["lake formation"]

    assert said.status == "warn"
    assert "DATA_LOCATION_ACCESS" in said.fix


def test_a_missing_grant_is_named(checks):
    assert "servicequotas:GetServiceQuota" in checks(refused=("quota",))["spot quota"].fix
