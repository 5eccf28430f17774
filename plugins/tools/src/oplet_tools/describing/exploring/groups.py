"""Groups of nodes, so that a graph of any size starts as a legible number of boxes: by paths in names, else by runs of
consecutive nodes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from oplet.texts import counted
from oplet_tools.describing.exploring.graph import Group

__all__ = ["group_nodes", "path_of"]

#: Boxes that a graph shows at first, at most; below the fewest, further groups are unfolded.
_MOST, _FEWEST = 60, 20
#: Folders of a name that groups are made of, at most: groups lie in each other, and whoever made the model chose the names.
_DEEPEST = 32
#: The label of nodes that no delegate claims.
_STAYS = "stays"
#: Parts of a path, from the outermost, in which stems are looked for.
_DEEPEST_STEM = 8
#: Boxes directly in one group, at most; more are bundled.
_WIDEST = 36


def path_of(name: str) -> tuple[str, ...]:
    """Return the outermost folders of a tensor's name, at most 32; of fused names, which ";" joins, the first counts.

    Examples:
        >>> path_of("net/block_1/conv/Relu6;net/block_1/conv/BiasAdd")
        ('net', 'block_1', 'conv')
    """
    return tuple(part for part in name.split(";")[0].split("/")[:-1] if part)[:_DEEPEST]


@dataclass
class _Tree:
    """A group while the tree grows."""

    label: str = ""
    partition: int | None = None  #: The partition that it stands for.
    #: The groups inside it, by what made them: a part of a path, a partition's number, or a range of nodes.
    groups: dict[object, _Tree] = field(default_factory=dict)
    nodes: list[int] = field(default_factory=list)  #: Nodes directly in it.
    open: bool = False  #: Whether it is unfolded at first.

    def all_nodes(self) -> Iterator[int]:
        yield from self.nodes
        for group in self.groups.values():
            yield from group.all_nodes()

    @property
    def width(self) -> int:
        return len(self.groups) + len(self.nodes)


def group_nodes(
    paths: Mapping[int, tuple[str, ...]],
    live: Sequence[int],
    ops: Mapping[int, str],
    partitions: Mapping[int, tuple[int, str]] | None = None,
    stays: Mapping[int, int] | None = None,
) -> list[Group]:
    """Group the nodes of a subgraph.

    Args:
        paths: the path of each node, in the order in which nodes run.
        live: for each of these nodes, the number of tensors that it or a node before it writes and a later node reads. Groups of
            consecutive nodes end where it is small.
        ops: the nodes' operators, for the labels of groups of consecutive nodes.
        partitions: the number and label of the partition of nodes that delegates claim: the outermost groups. None for names only.
        stays: for each unclaimed node, the number of partitions that run before it: nodes with the same number form a group. In
            one single group they would be linked with every partition, in both directions.

    Returns:
        The groups, each after the one around it.
    """
    order = {node: place for place, node in enumerate(paths)}
    paths = _with_stems(paths)
    root = _Tree(open=True)
    for node, path in paths.items():
        tree = root
        if partitions and node in partitions:
            number, label = partitions[node]
            tree = tree.groups.setdefault(number, _Tree(label, number))
        elif stays is not None:
            tree = tree.groups.setdefault((_STAYS, stays[node]), _Tree(_STAYS))
        for part in path:
            tree = tree.groups.setdefault(part, _Tree(part))
        tree.nodes.append(node)
    _simplify(root)
    _bundle(root, order, live, ops)
    _unfold(root)
    return list(_listed(root, None, []))


def _with_stems(paths: Mapping[int, tuple[str, ...]]) -> dict[int, tuple[str, ...]]:
    """Put a group around layers whose names begin alike and that follow each other: "block2a" around "block2a_expand_conv" and
    "block2a_bn". It stands for a part of the network, where the layers alone are a long flat list.
    """
    stems: dict[tuple[str, ...], set[str]] = {}
    for depth in range(min(max(map(len, paths.values()), default=0), _DEEPEST_STEM)):
        children: dict[tuple[str, ...], list[str]] = {}
        for path in paths.values():
            if len(path) >= depth:
                children.setdefault(path[:depth], []).append(path[depth] if len(path) > depth else "")
        for parent, names in children.items():
            stems[parent] = _shared_stems(names)
    return {node: tuple(_stemmed(path, stems)) for node, path in paths.items()}


def _stemmed(path: tuple[str, ...], stems: Mapping[tuple[str, ...], set[str]]) -> Iterator[str]:
    for depth, name in enumerate(path):
        if (stem := _stem(name)) in stems.get(path[:depth], ()):
            yield stem
        yield name


def _shared_stems(names: Sequence[str]) -> set[str]:
    """Return the stems that several names share, but not all of them, and that lie in one run of them: nodes that are apart would be linked
    with what is between them in both directions.
    """
    members: dict[str, set[str]] = {}
    runs: Counter[str] = Counter()
    for place, stem in enumerate(map(_stem, names)):
        members.setdefault(stem, set()).add(names[place])
        runs[stem] += place == 0 or stem != _stem(names[place - 1])
    whole = len(set(names))
    return {stem for stem, own in members.items() if stem and 1 < len(own) < whole and runs[stem] == 1}


def _stem(name: str) -> str:
    """Return what the name of a part of the network begins with: "block2a" of "block2a_expand_conv", "block_1" of "block_1_expand"; "" where
    the rest says nothing but a number, as in "conv2d_3".
    """
    first, *rest = name.split("_", 3)
    if rest and rest[0].isdecimal():
        first, rest = f"{first}_{rest[0]}", rest[1:]
    return first if first and any(not part.isdecimal() for part in rest) else ""


def _simplify(tree: _Tree) -> None:
    """Merge a group with the only group inside it, and dissolve groups of one node; groups of partitions stay."""
    for key, group in list(tree.groups.items()):
        while group.partition is None and not group.nodes and len(group.groups) == 1:
            [inner] = group.groups.values()
            label = group.label if group.label == _STAYS and isinstance(key, tuple) else f"{group.label}/{inner.label}"
            group = tree.groups[key] = _Tree(label, None, inner.groups, inner.nodes)
        _simplify(group)
        if group.partition is None and not group.groups and len(group.nodes) == 1:
            tree.nodes += group.nodes
            del tree.groups[key]


def _bundle(tree: _Tree, order: Mapping[int, int], live: Sequence[int], ops: Mapping[int, str]) -> None:
    """Split a group with too many nodes into groups of consecutive ones; `live` and `ops` are as in `group_nodes`."""
    for group in tree.groups.values():
        _bundle(group, order, live, ops)
    if tree.width <= _WIDEST:
        return
    # last place, number, a node or a group's key
    items: list[tuple[int, int, object]] = [(order[node], 0, node) for node in tree.nodes]
    items += [(max(order[node] for node in group.all_nodes()), 1, key) for key, group in tree.groups.items()]
    items.sort(key=lambda item: item[:2])
    bundles: dict[object, _Tree] = {}
    for stretch in _stretches([live[place] for place, _, _ in items]):
        bundle = _Tree()
        for _, kind, key in items[stretch.start : stretch.stop]:
            if kind:
                bundle.groups[key] = tree.groups[key]
            else:
                bundle.nodes.append(key)  # type: ignore[arg-type]
        bundle.label = _told(bundle, ops)
        bundles["stretch", stretch.start] = bundle
    tree.groups, tree.nodes = bundles, []


def _stretches(live: Sequence[int]) -> Iterator[range]:
    """Yield ranges of positions, about equally long, that end where few tensors are live (`live` has their numbers)."""
    count = min(max(2, round(math.sqrt(len(live)))), _WIDEST)
    length, start = len(live) / count, 0
    for number in range(1, count):
        middle, slack = round(number * length), int(length / 3)
        ends = range(max(start + 1, middle - slack), min(len(live), middle + slack + 1))
        end = min(ends, key=lambda place: (live[place - 1], abs(place - middle)), default=middle)
        yield range(start, end)
        start = end
    yield range(start, len(live))


def _told(bundle: _Tree, ops: Mapping[int, str]) -> str:
    """Return the label of a group of consecutive nodes: the groups in it, or its operators, the most frequent first."""
    names = [group.label for group in bundle.groups.values()]
    if names and len(names) >= len(bundle.nodes):
        return names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
    counts = Counter(ops[node] for node in bundle.nodes).most_common()
    told = ", ".join(op if count == 1 else f"{count} {op}" for op, count in counts[:2])
    return told + (f" and {counted(len(counts) - 2, 'other op')}" if len(counts) > 2 else "")


def _unfold(root: _Tree) -> None:
    """Unfold groups, the largest first, until enough boxes are shown; none is unfolded that would make them too many."""
    if sum(1 for _ in root.all_nodes()) <= _MOST:
        for group in _inside(root):
            group.open = True
        return
    shown, closed = root.width, list(root.groups.values())
    while closed and shown < _FEWEST:
        closed.sort(key=lambda group: sum(1 for _ in group.all_nodes()))
        group = closed.pop()
        if shown - 1 + group.width <= _MOST:
            group.open = True
            shown += group.width - 1
            closed += group.groups.values()


def _inside(tree: _Tree) -> Iterator[_Tree]:
    for group in tree.groups.values():
        yield group
        yield from _inside(group)


def _listed(tree: _Tree, parent: int | None, numbers: list[int]) -> Iterable[Group]:
    for group in tree.groups.values():
        number = len(numbers)
        numbers.append(number)
        yield Group(number, group.label, parent, group.nodes, group.open, group.partition)
        yield from _listed(group, number, numbers)
