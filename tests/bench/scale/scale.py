"""Simulates balancers before servers with a stream each: see `run`.

The time of a request is linear in its length, as a packed encoder has it; lengths are log-normal, as texts have them.
Only the standard library: it runs without the environment of the tests.
"""

import argparse
import bisect
import heapq
import math
import random

MS_FIXED, MS_PER_TOKEN = 0.25, 0.09  # all-MiniLM-L6-v2 in float32 on one thread: docs/speed.md


def lengths(rng):
    """Draws lengths of mixed texts: a median of 30 tokens, some hundreds at the most."""
    return min(512, max(4, round(math.exp(rng.gauss(math.log(30), 0.8)))))


class Server:
    """One queue, one stream: when it is free, and when its requests end."""

    def __init__(self, speed):
        self.speed = speed
        self.free = 0.0
        self.ends = []
        self.served = 0
        self.busy = []  # (begin, end) of the last second

    def under_way(self, now):
        while self.ends and self.ends[0] <= now:
            heapq.heappop(self.ends)
        return len(self.ends)

    def take(self, now, ms):
        begin = max(now, self.free)
        self.free = begin + ms / self.speed
        heapq.heappush(self.ends, self.free)
        self.served += 1
        self.busy.append((begin, self.free))
        return self.free

    def utilization(self, now, window=1000.0):
        """Returns its share of the last second, as a load report has it."""
        self.busy = [(b, e) for b, e in self.busy if e > now - window]
        return sum(max(0.0, min(e, now) - max(b, now - window)) for b, e in self.busy) / window


class RoundRobin:
    """One after the other."""

    def __init__(self, servers, rng):
        self.servers, self.turn = servers, 0

    def pick(self, now, length):
        self.turn += 1
        return self.turn % len(self.servers)


class Fewest:
    """The fewest requests under way, counted by the balancer itself."""

    def __init__(self, servers, rng):
        self.servers, self.turn = servers, 0

    def pick(self, now, length):
        count = len(self.servers)
        best = min(range(count), key=lambda i: (self.servers[i].under_way(now), (i - self.turn) % count))
        self.turn = best + 1
        return best


class ByLength:
    """Each server has the lengths of a range: ranges have the same share of the tokens."""

    def __init__(self, servers, rng):
        self.servers = servers
        drawn = sorted(lengths(rng) for _ in range(20000))
        total, sum_, self.bounds = sum(drawn), 0, []
        for length in drawn:
            sum_ += length
            if sum_ > total * (len(self.bounds) + 1) / len(servers):
                self.bounds.append(length)

    def pick(self, now, length):
        return min(bisect.bisect_left(self.bounds, length), len(self.servers) - 1)


class Scraped:
    """The fewest requests under way at the last scrape, 50 ms apart; of equal ones the first."""

    EVERY_MS = 50.0

    def __init__(self, servers, rng):
        self.servers, self.at, self.seen = servers, -math.inf, []

    def pick(self, now, length):
        if now - self.at >= self.EVERY_MS:
            self.at, self.seen = now, [server.under_way(now) for server in self.servers]
        return min(range(len(self.servers)), key=self.seen.__getitem__)


class Weighted:
    """In turns by weights, requests a second over utilisation, of load reports a second apart (gRPC's A58)."""

    EVERY_MS = 1000.0

    def __init__(self, servers, rng):
        self.servers, self.at = servers, 0.0
        self.weights, self.before, self.passes = [1.0] * len(servers), [0] * len(servers), [0.0] * len(servers)

    def pick(self, now, length):
        if now - self.at >= self.EVERY_MS:
            for i, server in enumerate(self.servers):
                rate = (server.served - self.before[i]) / (now - self.at)
                self.weights[i] = rate / max(server.utilization(now), 0.01) or self.weights[i]
                self.before[i] = server.served
            self.at = now
        best = min(range(len(self.servers)), key=self.passes.__getitem__)
        self.passes[best] += 1 / self.weights[best]
        return best


WAYS = {"fewest under way": Fewest, "round robin": RoundRobin, "weighted by reports": Weighted,
        "scraped each 50 ms": Scraped, "by length": ByLength}


def simulate(way, servers, load, requests, slow, seed=1):
    """(times in ms, servers) of one way, the same requests for each."""
    rng = random.Random(seed)
    running = [Server(1 / 3 if i < slow else 1.0) for i in range(servers)]
    balancer = WAYS[way](running, random.Random(seed + 1))
    mean = sum(MS_FIXED + MS_PER_TOKEN * lengths(rng) for _ in range(20000)) / 20000
    gap = mean / load / sum(server.speed for server in running)
    now, times = 0.0, []
    for i in range(requests):
        now += rng.expovariate(1 / gap)
        length = lengths(rng)
        end = running[balancer.pick(now, length)].take(now, MS_FIXED + MS_PER_TOKEN * length)
        if i >= requests // 10:
            times.append(end - now)
    return sorted(times), running


def percentile(times, share):
    return times[int(share * (len(times) - 1))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--servers", type=int, default=16)
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--slow", type=int, default=0)
    flags = parser.parse_args()
    print(f"{flags.servers} servers, {flags.slow} of them slow, at {flags.load} of what they can do")
    print(f"{'way':22}{'half within':>14}{'99 % within':>14}   share of the first, of the last")
    for way in WAYS:
        times, servers = simulate(way, flags.servers, flags.load, flags.requests, flags.slow)
        print(f"{way:22}{percentile(times, 0.5):11.1f} ms{percentile(times, 0.99):11.1f} ms"
              f"   {servers[0].served / flags.requests:6.1%}  {servers[-1].served / flags.requests:6.1%}")


if __name__ == "__main__":
    main()
