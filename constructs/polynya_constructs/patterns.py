"""What names of AWS look like, for constructs and for the files that describe a stage. Pure."""

from __future__ import annotations

from typing import Final

EMR_RELEASE: Final = r"emr-7\.\d{1,2}\.\d{1,2}"
EMR_APPLICATION: Final = r"[0-9a-z]{1,64}"
GLUE_JOB: Final = r"[A-Za-z0-9][\w.-]{0,254}"
JOB_ROLE: Final = r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,576}"

ERRORS_FOLDER: Final = "firehose-errors"
"""Folder of the landing bucket with what Firehose could not deliver, beside every dataset."""

LANDING_FOLDER: Final = (
    rf"(?!{ERRORS_FOLDER}(/|$))[A-Za-z0-9_-]{{1,64}}(/[A-Za-z0-9_-]{{1,64}}){{0,7}}"
)
"""A folder of the landing bucket, without a slash at either end."""

QUICKSIGHT_PRINCIPAL: Final = (
    r"arn:aws[a-z-]*:quicksight:[a-z0-9-]+:\d{12}:(user|group)/[\w.-]{1,64}/[^\s*?]{1,256}"
)
