"""HAProxy before the nodes of a cluster, with deploy/docker/haproxy-cluster.cfg and other addresses."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "api"))
from background import Background, free_port, program  # noqa: E402
from daemon import ask_once  # noqa: E402
from proxies import deploy_file, replace  # noqa: E402


class Balancer(Background):
    """Before these ports, or (port, port of --ops-listen) where health is asked there. Plain HTTP."""

    def __init__(self, ports, threads=2):
        super().__init__()
        try:
            self.binary, self.port = program("haproxy"), free_port()
            places = [place if isinstance(place, tuple) else (place, place) for place in ports]
            text = replace(deploy_file("docker/haproxy-cluster.cfg"), [
                ("    maxconn 20000\n", f"    maxconn 1000\n    nbthread {threads}\n"),
                ("bind :7420", f"bind 127.0.0.1:{self.port}"), ("check port 7421 ", "check "),
                (" resolvers containers init-addr last,libc,none", ""),
                ("resolvers containers\n    parse-resolv-conf\n    hold valid 5s\n", ""),
                ("    server kota1 kota1:7420\n    server kota2 kota2:7420\n", "".join(
                    f"    server kota{n} 127.0.0.1:{port} port {ops}\n"
                    for n, (port, ops) in enumerate(places, 1)))])
            self.start(self.binary, "-db", "-f", self.write("haproxy.cfg", text))
            self.wait(lambda: ask_once(self.port, "/v1/limits").status in (200, 401), "HAProxy answers")
        except BaseException:
            self.stop()
            raise
