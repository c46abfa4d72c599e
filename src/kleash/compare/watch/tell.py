"""Passing a warning on: to an address on the web, or to a command. What fails is one line.

The bots of DingTalk, WeCom and Feishu take a message in their own form and no other; everyone else
gets all that is known, with the sentence under `text`, where Slack and its kin look for it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

BOTS = {
    "oapi.dingtalk.com": lambda text: {"msgtype": "text", "text": {"content": text}},
    "qyapi.weixin.qq.com": lambda text: {"msgtype": "text", "text": {"content": text}},
    "open.feishu.cn": lambda text: {"msg_type": "text", "content": {"text": text}},
    "open.larksuite.com": lambda text: {"msg_type": "text", "content": {"text": text}},
}
SECONDS = 10.0


def post(address: str, warning: Mapping[str, Any]) -> str:
    """Send a warning to a webhook; what went wrong, or ''."""
    import httpx

    bot = BOTS.get(urlsplit(address).hostname or "")
    body = bot(f"kleash: {warning['text']}") if bot else dict(warning)
    try:
        answer = httpx.post(address, json=body, timeout=SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"the webhook cannot be reached: {type(error).__name__}: {error}"
    return "" if answer.is_success else f"the webhook answered {answer.status_code}"


def call(command: str, warning: Mapping[str, Any]) -> str:
    """Run a command of the user's with the warning in its environment; what went wrong, or ''."""
    told = {f"KLEASH_{name.upper()}": str(value) for name, value in warning.items()}
    try:
        done = subprocess.run(
            command, shell=True, env=os.environ | told, stdout=2, timeout=60, check=False
        )
    except subprocess.TimeoutExpired:
        return "the command took more than 60 s and was stopped"
    return "" if done.returncode == 0 else f"the command ended with {done.returncode}"
