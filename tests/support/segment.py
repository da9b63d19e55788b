"""A segment in both forms that Amazon Pinpoint documents: JSON Lines, an EndpointResponse each, and CSV."""

import json
from typing import Any


def _endpoint(
    id_: str, channel: str, address: str, opt_out: str = "NONE", **user: list[str]
) -> dict[str, Any]:
    return {
        "Id": id_,
        "ChannelType": channel,
        "Address": address,
        "EndpointStatus": "ACTIVE",
        "OptOut": opt_out,
        "RequestId": "6c1f1a2e-0f6b-4f7b-9d52-8c2bd0b4f1aa",
        "EffectiveDate": "2026-08-23T10:54:35.220Z",
        "CohortId": "63",
        "Location": {"Country": "CA", "Latitude": 49.3},
        "Demographic": {"Platform": "Android", "Make": "LG"},
        "Attributes": {"interests": ["music", "books"], "plan": ["gold"], "name": ["ada lovelace"]},
        "Metrics": {"visits": 3.0},
        "User": {"UserId": f"user-{id_}", "UserAttributes": user},
    }


ENDPOINTS = [
    _endpoint("e-1", "EMAIL", "ada@example.com", FirstName=["Ada"]),
    _endpoint("e-2", "EMAIL", "bob@example.com"),
    _endpoint("e-3", "EMAIL", "no-more@example.com", "ALL", FirstName=["Cyd"]),
    _endpoint("e-4", "SMS", "+16045550182", FirstName=["Ada"]),
    _endpoint("e-5", "APNS", "1a2b3c4d5e6f7g8h9i0j1a2b3c4d5e6f"),
    _endpoint("e-6", "GCM", "4d5e6f1a2b3c4d5e6f7g8h9i0j1a2b3c"),
    _endpoint("e-7", "EMAIL", "gone@example.com") | {"EndpointStatus": "INACTIVE"},
    {"Id": "e-8", "ChannelType": "EMAIL", "Address": "eve@example.com"},
]
JSON_LINES = "".join(f"{json.dumps(each)}\n" for each in ENDPOINTS).encode()
CSV = (
    "Id,ChannelType,Address,OptOut,Location.Country,User.UserId,User.UserAttributes.FirstName",
    "e-1,EMAIL,ada@example.com,NONE,CA,user-e-1,Ada",
    "e-2,EMAIL,bob@example.com,,CA,user-e-2,",
    "e-3,EMAIL,no-more@example.com,ALL,CA,user-e-3,Cyd",
    "e-4,SMS,+16045550182,NONE,CA,user-e-4,Ada",
    'e-8,EMAIL,eve@example.com,NONE,US,user-e-8,"Eve, the ""2nd"""',
)
