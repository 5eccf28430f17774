"""StringToHashBucketFast, StringToHashBucketStrong and StringToHashBucket: hash strings to 0 .. `num_buckets` - 1.

The first hashes with FarmHash, the second with SipHash and a key, the third, which is older, with MurmurHash.
"""

from __future__ import annotations

from collections.abc import Callable

from oplet import TensorType, ensure
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.texts.elementwise import elementwise
from oplet_flex_ops.texts.fingerprints import farm_fingerprint, murmur_hash, sip_hash


def fast(attributes: Attributes) -> Callable[[bytes], int]:
    buckets = attributes.integer("num_buckets", least=1)
    return lambda string: farm_fingerprint(string) % buckets


def strong(attributes: Attributes) -> Callable[[bytes], int]:
    buckets, key = attributes.integer("num_buckets", least=1), attributes.integers("key")
    ensure(len(key) == 2, lambda: f"the attribute 'key' of {attributes.op} has {len(key)} numbers; a key has two.")
    return lambda string: sip_hash((key[0], key[1]), string) % buckets


def older(attributes: Attributes) -> Callable[[bytes], int]:
    buckets = attributes.integer("num_buckets", least=1)
    return lambda string: murmur_hash(string) % buckets


STRINGTOHASHBUCKETFAST = elementwise(fast, TensorType.INT64)
STRINGTOHASHBUCKETSTRONG = elementwise(strong, TensorType.INT64)
STRINGTOHASHBUCKET = elementwise(older, TensorType.INT64)
