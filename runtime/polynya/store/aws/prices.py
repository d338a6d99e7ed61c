"""Prices of EC2 instances: Spot from EC2 itself, On-Demand from the Price List."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

from typing_extensions import override

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.clients import AWS_ERRORS, client, explained, is_transient, region_of
from polynya.store.clock import Clock, Retry
from polynya.store.jobs import MachinePrices

T = TypeVar("T")

#: The API of the Price List is not in each region ("AWS Price List Query API endpoints"); its
#: answers are the same everywhere.
_PRICE_LIST_REGIONS: Final = ("us-east-1", "eu-central-1", "ap-south-1")
_LINUX: Final = "Linux/UNIX"


class Ec2Prices(MachinePrices):
    """The prices in one region. See `MachinePrices`."""

    def __init__(
        self,
        access: AwsAccess,
        clock: Clock,
        *,
        retry: Retry | None = None,
        ec2: Any | None = None,
        pricing: Any | None = None,
    ) -> None:
        self._access, self._clock = access, clock
        self._retry = retry or Retry(deadline=10.0)
        self._ec2, self._pricing = ec2, pricing

    @override
    def spot(self, types: Collection[str]) -> Mapping[tuple[str, str], float]:
        ec2, now = self._ec2 or client("ec2", self._access), self._clock.now()
        asked: dict[str, Any] = {
            "InstanceTypes": sorted(types),
            "ProductDescriptions": [_LINUX],
            # From now on: EC2 answers with the price that each zone has now.
            "StartTime": now,
            "EndTime": now,
        }
        found: dict[tuple[str, str], float] = {}
        while True:
            answer = self._asked(
                "read Spot prices",
                "ec2:DescribeSpotPriceHistory",
                lambda: ec2.describe_spot_price_history(**asked),
            )
            for one in answer["SpotPriceHistory"]:
                if one.get("ProductDescription", _LINUX) == _LINUX:
                    # The newest one comes first.
                    place = one["InstanceType"], one["AvailabilityZone"]
                    found.setdefault(place, float(one["SpotPrice"]))
            if not answer.get("NextToken"):
                return found
            asked["NextToken"] = answer["NextToken"]

    @override
    def on_demand(self, types: Collection[str]) -> Mapping[str, float]:
        region = region_of(self._access)
        served = region if region in _PRICE_LIST_REGIONS else _PRICE_LIST_REGIONS[0]
        there = replace(self._access, region=served)
        pricing = self._pricing or client("pricing", there)
        prices = {one: self._on_demand(pricing, one, region) for one in sorted(types)}
        return {one: price for one, price in prices.items() if price is not None}

    def _on_demand(self, pricing: Any, machine: str, region: str) -> float | None:
        wanted = {
            "instanceType": machine,
            "regionCode": region,
            "operatingSystem": "Linux",
            "tenancy": "Shared",
            "preInstalledSw": "NA",
            "capacitystatus": "Used",
        }
        filters = [
            {"Type": "TERM_MATCH", "Field": name, "Value": value} for name, value in wanted.items()
        ]
        answer = self._asked(
            "read On-Demand prices",
            "pricing:GetProducts",
            lambda: pricing.get_products(
                ServiceCode="AmazonEC2", Filters=filters, FormatVersion="aws_v1"
            ),
        )
        return hourly_price([json.loads(one) for one in answer["PriceList"]])

    def _asked(self, action: str, grant: str, call: Callable[[], T]) -> T:
        try:
            return self._retry.run(call, is_transient)
        except AWS_ERRORS as error:
            raise explained(error, action=action, resource="EC2", grant=grant) from error


def hourly_price(products: Collection[Mapping[str, Any]]) -> float | None:
    """The On-Demand price in products of the Price List; None where none is by the hour.

    Some products cost nothing by the hour, such as reserved capacity.
    """
    prices = [
        float(dimension["pricePerUnit"]["USD"])
        for product in products
        for term in product.get("terms", {}).get("OnDemand", {}).values()
        for dimension in term["priceDimensions"].values()
        if dimension["unit"] == "Hrs" and "USD" in dimension["pricePerUnit"]
    ]
    return max((one for one in prices if one > 0), default=None)
