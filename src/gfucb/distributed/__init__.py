"""One agent whose tasks are in several processes, see docs/explanation/distributed.md."""

from gfucb.distributed.memory_shards import MemoryShards, meeting_address
from gfucb.distributed.process_shards import ProcessShards, connected
from gfucb.distributed.shard import Shard
from gfucb.distributed.sharded_agent import ShardedAgent, ShardError

__all__ = [
    "MemoryShards",
    "ProcessShards",
    "Shard",
    "ShardError",
    "ShardedAgent",
    "connected",
    "meeting_address",
]
