"""A Ray Serve deployment whose replicas each own a daemon: Ray places them, checks their health, scales them.

    serve run reprise_app:app models=/models num_cpus=2 min_replicas=2 max_replicas=8

A replica starts `reprised` on its node and is ready when all models answer. It passes requests over HTTP on
unchanged, streams among them, so that clients see the paths of a daemon. A daemon that ends or does not say that
it is alive fails the replica's health check, and Ray starts another replica.
"""

import asyncio
import logging
import typing

import aiohttp
import pydantic
import ray
import reprise
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

# Headers of one connection (RFC 9110, 7.6.1), and those that the server in front writes itself.
HOP = {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
       "host", "content-length"}
HEALTH_S = 5  # how long the daemon may take to say that it is alive
STOP_S = 10  # how long it may take to end, without requests, before it is killed

log = logging.getLogger("ray.serve")


class Arguments(pydantic.BaseModel):
    """The fields that `serve run` and `args` of a configuration may set."""

    model_config = pydantic.ConfigDict(extra="forbid")

    models: str | dict[str, str]
    """A repository, one model's folder or file, or the path of each name, as `reprise.serve` takes them."""
    flags: list[str] = []
    """More flags of `reprised`."""
    num_cpus: float = 1
    """CPUs that Ray reserves for a replica; the daemon runs as many streams, at least one."""
    max_replicas_per_node: int | None = None
    """1: a daemon a node, which then may have fixed ports (`flags`)."""
    min_replicas: int = 1
    max_replicas: int = 1
    target_ongoing_requests: float = 8
    """Requests under way at a replica that Ray aims at; about twice the size of a batch keeps the daemon busy."""
    max_ongoing_requests: int = 64
    """Requests that a replica accepts at a time; the others wait in Ray's proxy and may go to any replica."""
    start_s: float = 600
    """How long models may take to load."""


@serve.deployment(health_check_period_s=1, health_check_timeout_s=10, graceful_shutdown_timeout_s=60)
class Reprise:
    """A replica; `daemon` is its reprise.Server."""

    def __init__(self, arguments: Arguments):
        replica = serve.get_replica_context().replica_id.unique_id
        streams = max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1)))
        self.daemon = reprise.serve(arguments.models, "--instance", replica, "--streams", streams, *arguments.flags,
                                    timeout=arguments.start_s)
        self.session = None
        log.info("reprised is process %d: %s, metrics at %s", self.daemon.process.pid, self.daemon.url, self.daemon.metrics)

    def client(self) -> aiohttp.ClientSession:
        """Returns the session, which belongs to the replica's event loop; aiohttp keeps connections in it."""
        if self.session is None:
            self.session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False, connector=aiohttp.TCPConnector(limit=0),
                skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"))
        return self.session

    async def check_health(self):
        """Raises where the daemon ended or hangs; three times in a row, and Ray replaces this replica."""
        if (ended := self.daemon.process.poll()) is not None:
            raise RuntimeError(f"reprised ended with {ended}\n{self.daemon.log()}")
        async with self.client().get(f"{self.daemon.url}/v2/health/live", timeout=aiohttp.ClientTimeout(HEALTH_S)) as answer:
            answer.raise_for_status()

    async def __call__(self, request: Request) -> Response:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", "").rstrip("/"))
        query = request.scope["query_string"].decode("latin-1")
        headers = [(name, value) for name, value in request.headers.items() if name not in HOP]
        try:
            answer = await self.client().request(
                request.method, f"{self.daemon.url}{path}{'?' + query if query else ''}", headers=headers,
                data=await request.body(), allow_redirects=False)
        except aiohttp.ClientError as error:  # it ended: the next check of health says so to Ray
            return JSONResponse({"error": f"the daemon of this replica: {error}"}, 503, {"retry-after": "1"})
        passed = {name: value for name, value in answer.headers.items() if name.lower() not in HOP}
        if "content-length" in answer.headers:
            try:
                return Response(await answer.read(), answer.status, passed)
            finally:
                answer.release()
        return StreamingResponse(self.parts(answer), answer.status, passed)

    @staticmethod
    async def parts(answer: aiohttp.ClientResponse) -> typing.AsyncIterator[bytes]:
        """Yields a stream's parts as they come; a client that goes ends the request of the daemon too."""
        try:
            async for part in answer.content.iter_any():
                yield part
        finally:
            answer.close()

    async def __del__(self):
        """Ends the daemon, after Ray has waited for the replica's requests."""
        if getattr(self, "session", None) is not None:
            await self.session.close()
        if hasattr(self, "daemon"):
            await asyncio.to_thread(self.daemon.stop, STOP_S)


def app(arguments: Arguments) -> serve.Application:
    """Builds the application from its arguments."""
    return Reprise.options(
        ray_actor_options={"num_cpus": arguments.num_cpus}, max_replicas_per_node=arguments.max_replicas_per_node,
        max_ongoing_requests=arguments.max_ongoing_requests, autoscaling_config={
            "min_replicas": arguments.min_replicas, "max_replicas": arguments.max_replicas,
            "target_ongoing_requests": arguments.target_ongoing_requests}).bind(arguments)
