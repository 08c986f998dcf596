"""Connections to the loopback of a sandbox: opened inside, handed to the harness.

A process of its own enters the sandbox's network namespace, because a process that enters a user
namespace may have one thread alone. Run as a script it serves requests from a Unix socket; standard
library only.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import socket
import struct
import subprocess
import sys
from typing import Final

_REQUEST: Final = struct.Struct("H")  # a port
_REPLY: Final = struct.Struct("i")  # an errno, 0 with a descriptor
_NS_GET_USERNS: Final = 0xB701  # linux/nsfs.h
_CONNECT_S: Final = 5.0
_FORBIDDEN: Final = (
    "this process may not enter the job's network namespace: run as root, use rootless"
    " Docker, or let the job listen on a Unix socket in its work directory"
)


class SandboxLoopback:
    """The loopback of a sandbox, given the pid of a process inside."""

    def __init__(self, pid: int) -> None:
        self._socket, far = socket.socketpair()
        words = (str(far.fileno()), str(pid))
        self._process = subprocess.Popen(  # noqa: S603  this interpreter, this file
            [sys.executable, "-I", "-S", os.path.abspath(__file__), *words],
            pass_fds=(far.fileno(),),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        far.close()

    def connect(self, port: int) -> socket.socket:
        """Return a connection to a port inside.

        Args:
            port: The port.
        Raises:
            ConnectionRefusedError: Nothing listens there.
            PermissionError: The namespace cannot be entered, as where Docker runs as root and this
                process does not.
        """
        self._socket.sendall(_REQUEST.pack(port))
        data, descriptors, _, _ = socket.recv_fds(self._socket, _REPLY.size, 1)
        (fault,) = _REPLY.unpack(data or _REPLY.pack(errno.EPIPE))
        if fault == errno.EPERM:
            raise PermissionError(fault, _FORBIDDEN)
        if fault:
            raise OSError(fault, f"port {port} of the sandbox: {os.strerror(fault)}")
        return socket.socket(fileno=descriptors[0])

    def close(self) -> None:
        """End the process that opens connections; those it opened live on."""
        self._socket.close()
        self._process.wait()


def enter_network(pid: int) -> None:
    """Enter the network namespace of a process.

    Args:
        pid: The process.
    Raises: OSError: The kernel forbids it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    if libc.setns(network, 0) == 0:
        return
    # Its user namespace is this user's own: inside it this process may.
    if libc.setns(fcntl.ioctl(network, _NS_GET_USERNS), 0) or libc.setns(network, 0):
        raise OSError(ctypes.get_errno(), "setns")


def _serve(requests: socket.socket, fault: int) -> None:
    """Answer requests until the other end is closed."""
    while data := requests.recv(_REQUEST.size):
        descriptors = []
        try:
            if fault:
                raise OSError(fault, "")
            address = ("127.0.0.1", *_REQUEST.unpack(data))
            connection = socket.create_connection(address, _CONNECT_S)
            connection.setblocking(True)
            descriptors = [connection.detach()]
            answer = 0
        except OSError as error:
            answer = error.errno or errno.ETIMEDOUT
        socket.send_fds(requests, [_REPLY.pack(answer)], descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def main(arguments: list[str]) -> None:
    """Enter the namespace of the process named and serve the descriptor named."""
    fault = 0
    try:
        enter_network(int(arguments[2]))
    except OSError:
        fault = errno.EPERM
    with contextlib.suppress(BrokenPipeError):
        _serve(socket.socket(fileno=int(arguments[1])), fault)


if __name__ == "__main__":
    main(sys.argv)
