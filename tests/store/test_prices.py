"""Prices of EC2, in requests and answers that the model of each service checks."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from polynya.model.config.aws import AwsAccess
from polynya.model.errors import DependencyError
from polynya.store.aws.prices import Ec2Prices, hourly_price
from polynya.store.clock import Retry
from polynya.testing.fakes import FakeClock

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


class Aws:
    """Clients whose requests and answers are checked, and the prices that ask them."""

    def __init__(self) -> None:
        clock = FakeClock(NOW)
        self.ec2, self.pricing = (
            boto3.client(name, "eu-west-1", aws_access_key_id="x", aws_secret_access_key="x")
            for name in ("ec2", "pricing")
        )
        self.of_ec2, self.of_pricing = Stubber(self.ec2), Stubber(self.pricing)
        self.of_ec2.activate()
        self.of_pricing.activate()
        self.prices = Ec2Prices(
            AwsAccess(region="eu-west-1"),
            clock,
            retry=Retry(deadline=0.0, clock=clock),
            ec2=self.ec2,
            pricing=self.pricing,
        )


def spot(zone: str, price: str, product: str = "Linux/UNIX") -> dict[str, Any]:
    return {
        "InstanceType": "m7g.large",
        "AvailabilityZone": zone,
        "SpotPrice": price,
        "ProductDescription": product,
        "Timestamp": NOW,
    }


def product(unit: str, usd: str) -> dict[str, Any]:
    dimension = {"unit": unit, "pricePerUnit": {"USD": usd}}
    return {"terms": {"OnDemand": {"A.B": {"priceDimensions": {"A.B.C": dimension}}}}}


def test_the_newest_spot_price_of_each_zone_counts_over_all_pages() -> None:
    aws = Aws()
    asked = {
        "InstanceTypes": ["m7g.large"],
        "ProductDescriptions": ["Linux/UNIX"],
        "StartTime": NOW,
        "EndTime": NOW,
    }
    first = [spot("eu-west-1a", "0.0301"), spot("eu-west-1a", "0.0300")]
    second = [spot("eu-west-1b", "0.0400"), spot("eu-west-1c", "0.01", "Windows")]
    aws.of_ec2.add_response(
        "describe_spot_price_history", {"SpotPriceHistory": first, "NextToken": "more"}, asked
    )
    aws.of_ec2.add_response(
        "describe_spot_price_history",
        {"SpotPriceHistory": second, "NextToken": ""},
        {**asked, "NextToken": "more"},
    )

    assert aws.prices.spot(["m7g.large"]) == {
        ("m7g.large", "eu-west-1a"): 0.0301,
        ("m7g.large", "eu-west-1b"): 0.04,
    }


def test_an_on_demand_price_is_that_of_linux_by_the_hour_in_this_region() -> None:
    aws = Aws()
    wanted = {
        "instanceType": "m7g.large",
        "regionCode": "eu-west-1",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    filters = [
        {"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()
    ]
    aws.of_pricing.add_response(
        "get_products",
        {"PriceList": [json.dumps(product("Hrs", "0.0911000000"))]},
        {"ServiceCode": "AmazonEC2", "Filters": filters, "FormatVersion": "aws_v1"},
    )

    assert aws.prices.on_demand(["m7g.large"]) == {"m7g.large": 0.0911}


@pytest.mark.parametrize(
    ("products", "price"),
    [
        ([], None),
        ([product("Hrs", "0.0000000000")], None),
        ([product("Quantity", "99")], None),
        ([{"terms": {}}, product("Hrs", "0.0"), product("Hrs", "0.08")], 0.08),
    ],
)
def test_a_product_without_a_price_by_the_hour_has_none(
    products: list[dict[str, Any]], price: float | None
) -> None:
    assert hourly_price(products) == price


def test_a_refusal_names_the_right_that_is_missing() -> None:
    aws = Aws()
    aws.of_ec2.add_client_error(
        "describe_spot_price_history", "UnauthorizedOperation", http_status_code=403
    )

    with pytest.raises(DependencyError, match="Spot prices") as refused:
        aws.prices.spot(["m7g.large"])
    assert "ec2:DescribeSpotPriceHistory" in str(refused.value.as_dict())
