"""Nodes of Ray's fake provider that can be lost: machines without power are reported as gone.

The monitor of the cluster's head finds it as `mortal_nodes.Provider`.
"""

from ray.autoscaler._private.fake_multi_node.node_provider import FakeMultiNodeProvider


class Provider(FakeMultiNodeProvider):
    """Says of its nodes what a cloud would; the original counts the dead among the living."""

    def non_terminated_nodes(self, tag_filters):
        """Names of the nodes that live."""
        with self.lock:
            for name, node in list(self._nodes.items()):
                if "node" in node and not any(
                    kind == "raylet" for kind, _ in node["node"].live_processes()
                ):
                    del self._nodes[name]
            return super().non_terminated_nodes(tag_filters)
