"""What names of AWS look like, for constructs and for the files that describe a stage. Pure."""

from __future__ import annotations

from typing import Final

EMR_RELEASE: Final = r"emr-7\.\d{1,2}\.\d{1,2}"
EMR_APPLICATION: Final = r"[0-9a-z]{1,64}"
GLUE_JOB: Final = r"[A-Za-z0-9][\w.-]{0,254}"
#: An object in S3, or a prefix that ends with a slash.
JOB_CODE: Final = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/[\w./=-]{0,900}"
JOB_ROLE: Final = r"arn:aws[a-z-]*:iam::\d{12}:role/[\w+=,.@/-]{1,576}"

ERRORS_FOLDER: Final = "firehose-errors"
"""Folder of the landing bucket with what Firehose could not deliver, beside every dataset."""

LANDING_FOLDER: Final = (
    rf"(?!{ERRORS_FOLDER}(/|$))[A-Za-z0-9_-]{{1,64}}(/[A-Za-z0-9_-]{{1,64}}){{0,7}}"
)
"""A folder of the landing bucket, without a slash at either end."""

STREAM: Final = r"[A-Za-z0-9_.%-]{1,128}"
TOPIC: Final = r"[A-Za-z0-9._%-]{1,249}"
"""`%` stands for any text, as in tasks."""

MSK_CLUSTER: Final = (
    r"arn:aws[a-z-]*:kafka:[a-z0-9-]+:\d{12}:cluster/[A-Za-z0-9-]{1,64}/[0-9a-f-]{36}-[0-9a-z]+"
)
MANAGED_ENTRY: Final = (
    r"[A-Za-z0-9/_+=.@-]{1,512}"
    r"|arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[A-Za-z0-9/_+=.@-]{1,512}-[A-Za-z0-9]{6}"
)
"""A name, or an ARN with the six characters that Secrets Manager adds to the name."""

CERTIFICATE: Final = (
    r"arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
SNS_TOPIC: Final = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}"
KMS_KEY: Final = r"arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key/[0-9a-f-]{36}"

SECURITY_GROUP: Final = r"sg-([0-9a-f]{8}|[0-9a-f]{17})"

QUICKSIGHT_PRINCIPAL: Final = (
    r"arn:aws[a-z-]*:quicksight:[a-z0-9-]+:\d{12}:(user|group)/[\w.-]{1,64}/[^\s*?]{1,256}"
)

PRINCIPAL: Final = r"arn:aws[a-z-]*:iam::\d{12}:(role|user)/[\w+=,.@/-]{1,512}"
"""One user or role of IAM, and neither a whole account nor everybody."""

EXTERNAL_ID: Final = r"[A-Za-z0-9_+=,.@:/-]{8,1224}"
"""What STS takes (API Reference, `AssumeRole`), and long enough that nobody guesses it."""

DATABRICKS_ACCOUNT: Final = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

REDSHIFT_WORKGROUP: Final = (
    r"arn:aws[a-z-]*:redshift-serverless:[a-z0-9-]+:\d{12}:workgroup/"
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
REDSHIFT_CLUSTER: Final = r"[a-z][a-z0-9-]{0,62}"
REDSHIFT_DATABASE: Final = r"[a-z_][a-z0-9_$]{0,63}"

TABLE: Final = r"[a-z0-9_]{1,255}"
"""A table of the Glue catalog, as Polynya names it."""
