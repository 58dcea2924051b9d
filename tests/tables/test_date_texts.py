"""Dates and numbers as people write them."""

from datetime import UTC, datetime
from typing import Any

import pytest

from bayesvote.io.model_file import dumps, loads
from bayesvote.tables import Columns
from bayesvote.tables.date_texts import Order, parse

JANUARY = datetime(2013, 1, 2, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        *("2013-01-02", "20130102", "2013/01/02", "2013.1.2", "02.01.2013", "Jan 02, 2013", "January 2 2013"),
        *("2 Jan 2013", "02-Jan-2013", "2nd January, 2013", "Wed, 2 Jan 2013", "Wednesday, January 2, 2013"),
        *("01/02/2013", "1/2/2013", "01-02-2013", "1/2/2013 00:00", "Jan 2, 2013 12:00 AM"),
    ],
)
def test_usual_dates_are_read(text: str) -> None:
    assert parse(text) == JANUARY
    columns = Columns({"x": "month_first"}).start({"x": [text]})
    assert columns.checked({"x": [text]}).columns["x"].numbers.tolist() == [JANUARY]


def test_times_of_dates_are_read() -> None:
    assert parse("1/2/2013 3:05 PM") == parse("2013-01-02T15:05")
    assert parse("Jan 2, 2013 15:05:09") == parse("2013-01-02T15:05:09")
    assert parse("31/12/2013", Order.DAY_FIRST) == parse("2013-12-31") == parse("31/12/2013")


@pytest.mark.parametrize(
    "text",
    ["31/31/2013", "2013-13-01", "Foo 2, 2013", "1/2/13", "1/2-2013", "Janx 2, 2013", "1/2/2013 13:00 PM", "3.5"],
)
def test_other_texts_are_no_dates(text: str) -> None:
    assert parse(text) is None


def read(values: list[Any], kind: str | None = None) -> Any:
    columns = Columns(None if kind is None else {"x": kind}).start({"x": values})
    return columns.describe()[0]["kind"], columns.checked({"x": values}).columns["x"].numbers.tolist()


def test_the_order_of_day_and_month_is_that_of_the_column() -> None:
    assert read(["01/02/2013", "13/02/2013"]) == ("date", [parse("2013-02-01"), parse("2013-02-13")])
    assert read(["01/02/2013", "02/13/2013"]) == ("date", [parse("2013-01-02"), parse("2013-02-13")])
    assert read(["01/02/2013"], "day_first") == ("date", [parse("2013-02-01")])
    assert read(["01/02/2013"], "month_first") == ("date", [parse("2013-01-02")])


def test_an_open_order_is_told_and_later_dates_must_fit() -> None:
    with pytest.warns(UserWarning, match=r"'x' holds dates such as '01/02/2013'.*columns=\{'x': 'day_first'\}") as told:
        columns = Columns().start({"x": ["01/02/2013"]})
    assert (len(told), told[0].filename) == (1, __file__)
    with pytest.raises(ValueError, match=r"column 'x' must hold dates with the month first.*'13/02/2013' in row 1"):
        columns.checked({"x": ["03/04/2013", "13/02/2013"]})
    plain = Columns().start({"x": ["2013-01-02"]})
    assert plain.checked({"x": ["13/02/2013"]}).columns["x"].numbers.tolist() == [parse("2013-02-13")]
    with pytest.raises(ValueError, match=r"column 'x' must not hold ambiguous dates, got '01/02/2013' in row 0"):
        plain.checked({"x": ["01/02/2013"]})


def test_the_order_is_kept_in_files() -> None:
    from bayesvote import BayesianEnsembleClassifier

    X = {"x": ["01/02/2013", "13/02/2013", "05/06/2013", "07/08/2013"] * 5}
    model = BayesianEnsembleClassifier("logistic", 3, random_state=0).fit(X, [0, 1, 1, 0] * 5)
    again = loads(dumps(model))
    found = again.columns_.checked({"x": ["01/02/2013"]}).columns["x"].numbers
    assert found.tolist() == [parse("2013-02-01")]


def test_numbers_with_thousands_are_numbers() -> None:
    assert read(["1,400", "2,000,000.5", "-3", "+1,000"]) == ("number", [1400.0, 2000000.5, -3.0, 1000.0])
    assert read(["1,5"])[0] == "category"
    assert read(["1,40,0"])[0] == "category"


def test_numbers_are_dates_where_that_is_stated() -> None:
    assert read([20130102, "20130102"], "date") == ("date", [JANUARY, JANUARY])
    assert read([20130102, 20131399]) == ("number", [20130102.0, 20131399.0])
