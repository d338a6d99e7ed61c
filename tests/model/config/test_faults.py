"""Pauses before a capture is tried again."""

from __future__ import annotations

from polynya.model.config.capture import EnvironmentErrors, matches, pause_seconds, takes


def test_pauses_double_up_to_the_longest():
    policy = EnvironmentErrors.model_validate({"from": "5s", "to": "1m"})

    assert [pause_seconds(policy, failures) for failures in (1, 2, 3, 4, 5, 5000)] == [
        5, 10, 20, 40, 60, 60,
    ]  # fmt: skip


def test_a_number_of_retries_comes_to_an_end():
    policy = EnvironmentErrors(retry=2)

    assert pause_seconds(policy, 2) == 10
    assert pause_seconds(policy, 3) is None
    assert pause_seconds(EnvironmentErrors(retry=0), 1) is None


def test_tables_are_chosen_by_names_with_wildcards():
    assert matches("public.*", "public.orders")
    assert matches("public.tmp_%", "public.tmp_1")
    assert not matches("public.tmp_%", "public.tmpx")
    assert not matches("public.ORDERS", "public.orders")
    assert not matches("public.order.", "public.orders")
    assert takes(["public.*"], ["public.tmp_%"], "public.orders")
    assert not takes(["public.*"], ["public.tmp_%"], "public.tmp_1")
