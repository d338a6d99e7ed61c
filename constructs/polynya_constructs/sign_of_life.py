"""The alarm of a process that says once a minute that it works."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from polynya_constructs.cluster.scaling import NAMESPACE, ONE_MINUTE


def sign_of_life_alarm(
    scope: Construct,
    id_: str,
    *,
    metric: str,
    dimensions: Mapping[str, str],
    statistic: str,
    name: str,
    description: str,
    topic: sns.ITopic | None,
) -> cloudwatch.Alarm:
    """Alarm when a metric is not 1 for five minutes, or is not there at all; tells `topic`."""
    alarm = cloudwatch.Metric(
        namespace=NAMESPACE,
        metric_name=metric,
        dimensions_map=dict(dimensions),
        statistic=statistic,
        period=ONE_MINUTE,
    ).create_alarm(
        scope,
        id_,
        alarm_name=name,
        alarm_description=description,
        comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
        threshold=1,
        evaluation_periods=5,
        treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
    )
    if topic:
        alarm.add_alarm_action(actions.SnsAction(topic))
        alarm.add_ok_action(actions.SnsAction(topic))
    return alarm
