"""Joining a Ray cluster that is there: which one, with which token, and one line where it fails.

Ray waits half a minute for an address that is silent or turns us away, and then says little. So the
address is asked first.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any

from kleash.errors import ConfigError

ANSWER = 10.0  # seconds that an address has to answer
CLIENT = "ray://"
CLIENTS = 3  # times that a client is started before it is given up


def join_cluster(on: str, **keys: Any) -> None:
    """Connect to the cluster that `auto` or `ray://HOST:PORT` means; else say why not."""
    import ray

    address = address_of(on)
    try:
        bring_token(address)
        knock(address)
        connect(address, keys)
    except ray.exceptions.AuthenticationError as error:
        line = error.message.split(". ")[0]
        raise ConfigError(f"no token for the Ray cluster at {address}: {line}") from error
    except (ConnectionError, RuntimeError, ValueError) as error:
        line = str(error).strip().split("\n")[0]
        raise ConfigError(f"the Ray cluster at {address} cannot be joined: {line}") from error


def connect(address: str, keys: dict[str, Any]) -> None:
    """Have Ray connect, a client more than once.

    The process that a cluster starts for a client sometimes dies at once, forked in the middle of
    other calls (ray-project/ray issue 63202; one in 25 here), which a client hears after 40 s.
    """
    import ray

    for left in reversed(range(CLIENTS)):
        try:
            ray.init(address=address, **keys)
        except ConnectionAbortedError:
            if not left:
                raise
        else:
            return


def address_of(on: str) -> str:
    """`auto` is what RAY_ADDRESS says, else what the last `ray start` here wrote down."""
    from ray._private.services import canonicalize_bootstrap_address

    address = os.environ.get("RAY_ADDRESS", "") if on == "auto" else on
    if not address:
        try:
            address = canonicalize_bootstrap_address("auto")
        except ConnectionError as error:
            raise ConfigError(
                "no Ray cluster runs on this machine: start one with `ray start --head`,"
                " or say where it is with RAY_ADDRESS or --on ray://HOST:PORT"
            ) from error
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"{address!r} is no address of a Ray cluster: HOST:PORT is missing in it")
    return address


def bring_token(address: str) -> None:
    """Use the user's token as `ray start` does: where there is one, unless RAY_AUTH_MODE says else.

    Ray does so by itself only for a cluster that it has found, and not for an address that is
    named. An address of this machine is as near; to another one no token goes unless asked for.
    """
    host = address.removeprefix(CLIENT).rpartition(":")[0]
    if not is_here(host):
        return
    with suppress(ImportError):  # a Ray that sees to it by itself
        from ray._private.authentication import authentication_token_setup as tokens

        tokens.logger.setLevel("ERROR")  # it would announce what we ask for
        tokens.maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


def is_here(host: str) -> bool:
    """Whether an address is this machine's: only those can be bound."""
    with socket.socket() as ours:
        try:
            ours.bind((host, 0))
        except OSError:
            return False
    return True


def knock(address: str) -> None:
    """One small request, so that silence, a wrong token and a wrong port are told apart at once."""
    from ray._private import grpc_utils
    from ray.core.generated import ray_client_pb2 as client

    method, request = "/ray.rpc.NodeInfoGcsService/GetClusterId", b""
    if address.startswith(CLIENT):
        ping = client.ClusterInfoRequest(type=client.ClusterInfoType.PING)
        method, request = "/ray.rpc.RayletDriver/ClusterInfo", ping.SerializeToString()
    with grpc_utils.init_grpc_channel(address.removeprefix(CLIENT)) as channel:
        try:
            channel.unary_unary(method)(request, timeout=ANSWER)
        except grpc_utils.grpc.RpcError as error:
            raise why_not(address, error.code().name) from error


def why_not(address: str, code: str) -> ConfigError:
    """What a code of gRPC means here."""
    if code == "UNAUTHENTICATED":
        return refused(address)
    if code in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        return ConfigError(f"no Ray cluster answers at {address}: is it running, and is that it?")
    other = "ray:// wants the client's port, 10001 if not set otherwise"
    if not address.startswith(CLIENT):
        other = "RAY_ADDRESS without ray:// wants the port of `ray start --head`, 6379 by default"
    return ConfigError(f"what answers at {address} is another service ({code}): {other}")


def refused(address: str) -> ConfigError:
    """The cluster wants another token, or one at all."""
    if os.environ.get("RAY_AUTH_MODE", "").lower() == "token":
        return ConfigError(
            f"the Ray cluster at {address} refuses our token: RAY_AUTH_TOKEN, the file named by"
            " RAY_AUTH_TOKEN_PATH or ~/.ray/auth_token must hold the one it was started with"
        )
    return ConfigError(
        f"the Ray cluster at {address} wants a token: set RAY_AUTH_MODE=token, and put the one it"
        " was started with in ~/.ray/auth_token or RAY_AUTH_TOKEN"
    )
