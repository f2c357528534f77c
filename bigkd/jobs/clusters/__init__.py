"""Where a job runs: clusters that it starts and stops, or that are there."""

from bigkd.jobs.clusters.opened import ClusterPart, check_cluster, memory_per_thread, opened_cluster

__all__ = ["ClusterPart", "check_cluster", "memory_per_thread", "opened_cluster"]
