"""What all kinds of cluster have in common."""

from abc import abstractmethod
from contextlib import AbstractContextManager
from typing import Self

from dask.utils import parse_bytes
from distributed import Client, Security
from pydantic import Field, model_validator

from bigkd.engine.connections import require_pem
from bigkd.engine.schedulers import usable_bytes
from bigkd.jobs.base import Location, Part, Positive, Whole

DEATH_TIMEOUT = 60
"""Seconds that a worker looks for its scheduler before it ends."""


class StartedPart(Part):
    """A cluster that a job runs on: how to start it, or where it is."""

    wait_seconds: Positive = Field(
        default=60.0, description="how long the first worker may take to come"
    )

    @abstractmethod
    def started(self) -> AbstractContextManager[Client]:
        """A client of the cluster; what was started for it is gone afterwards, whatever happens."""

    def require_usable(self) -> None:
        """Raise what can be known to be wrong before anything is started."""

    def memory_per_thread(self) -> int | None:
        """Bytes that one task may use; None if only the cluster knows."""
        return None

    def whereabouts(self) -> str:
        """What to look at when no worker comes."""
        return "Look at the logs of its scheduler and of its workers."


class AdaptivePart(Part):
    """Between how many the cluster grows and shrinks with the work."""

    minimum: Whole = Field(default=1, description="fewest")
    maximum: Whole = Field(description="most")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.minimum > self.maximum:
            raise ValueError(f"has a minimum of {self.minimum} above its maximum, {self.maximum}")
        return self


class TlsPart(Part):
    """Certificates, as PEM files; the same for the client, the scheduler and the workers."""

    ca_file: Location = Field(description="certificate of the authority that signed the others")
    cert: Location = Field(description="certificate of this side")
    key: Location = Field(description="key of that certificate, without a passphrase")

    def require_usable(self) -> None:
        """Raise InputError, naming the key, unless each is a PEM file that can be read."""
        for name in TlsPart.model_fields:
            require_pem(getattr(self, name), f"cluster.tls.{name}")

    def security(self) -> Security:
        """The same for Dask, which then refuses whatever is not encrypted."""
        files: dict[str, str | bool] = {"require_encryption": True, "tls_ca_file": self.ca_file}
        for role in ("client", "scheduler", "worker"):
            files[f"tls_{role}_cert"], files[f"tls_{role}_key"] = self.cert, self.key
        return Security(**files)


def in_bytes(value: int | str) -> int:
    """What a field of type `bigkd.jobs.base.Bytes` says."""
    return int(parse_bytes(value))


def per_thread(value: int | str, *, threads: int) -> int:
    """Bytes that one task may use of a worker that has `value` for `threads` threads."""
    return usable_bytes(in_bytes(value), threads=threads)
