"""What a page holds, read in Python: the twin of the page's own reader."""

import base64
import json
import re
import zlib

import numpy as np


def page_block(page):
    """Return the description and the arrays of a page's block."""
    return unpack(re.search(r'<script type="text/plain" id="data">([^<]*)</script>', page)[1])


def unpack(text):
    whole = zlib.decompress(base64.b85decode(text.translate(str.maketrans(",.", "<&"))))
    head = int.from_bytes(whole[:4], "little")
    return json.loads(whole[4 : 4 + head]), whole[4 + head :]


def read_array(arrays, about):
    planes = np.frombuffer(arrays, np.uint8, about["length"] * about["width"], about["at"])
    values = np.zeros(about["length"], dtype=np.int64)
    for plane in planes.reshape(about["width"], about["length"]):
        values = (values << 8) | plane
    if about.get("signed"):
        values = (values >> 1) ^ -(values & 1)
    if about.get("delta"):
        values = values.cumsum()
    return values * about["step"] if "step" in about else values


def charts(page):
    """Return the charts of a page by their titles."""
    found = re.findall(r'<script type="application/json">(.*?)</script>', page, flags=re.S)
    return {chart["title"]: chart for chart in map(json.loads, found)}
