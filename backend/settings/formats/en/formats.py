"""Dates as the API and the log write them, in place of the formats that Django has for English."""

DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = "Y-m-d H:i:s"
SHORT_DATETIME_FORMAT = DATETIME_FORMAT
