"""Which rules count a request, and whether it passes.

Rules that are ``approximate`` are counted first, mostly in the process's memory
(``approximate_counts``); the others are counted in Redis (``exact_counts``). A request that the
former refuse costs no call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from math import ceil
from typing import Any, ClassVar, NamedTuple

from django.conf import settings

from backend.kernel.errors import RateLimited, ServiceError, ServiceUnavailable, UsernameMissing
from backend.kernel.networks import client_network
from backend.kernel.principal import Principal
from backend.kernel.texts.spelling import check_account_name, name_key
from backend.limits.approximate_counts import ApproximateClaim, ApproximateCounter, Outcome
from backend.limits.book import Book
from backend.limits.bucket_names import NEARLY, Names, Who
from backend.limits.exact_counts import PAUSE, Bucket, Count, Counter
from backend.settings.conf import service_settings
from backend.settings.rate_limits import Rule, read


class Request(NamedTuple):
    """A request as the rules count it.

    ``principal`` is None if the credentials were refused. Such a request is counted for its
    address only, so that a caller without a key can't use up the limits of others. ``key`` is the
    name of the API key. ``parameters`` are those in which rules per account look for user names and
    e-mail addresses.
    """

    rules: tuple[Rule, ...]
    path: str
    address: str
    principal: Principal | None
    key: str = ""
    parameters: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Quota:
    """Of ``limit`` requests a caller has ``remaining``, and more in ``reset`` seconds."""

    limit: int
    remaining: int
    reset: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset),
        }


class TooManyRequests(RateLimited):
    """The caller has to wait for ``quota.reset`` seconds."""

    def __init__(self, quota: Quota, message: str | None) -> None:
        super().__init__(message or f"Too many requests: try again in {quota.reset} seconds.")
        self.quota = quota
        self.headers = {"Retry-After": str(quota.reset), **quota.headers()}


class LimitsUnavailable(ServiceUnavailable):
    """Redis is away, and a rule doesn't let a request pass uncounted."""

    headers: ClassVar[Mapping[str, str]] = {"Retry-After": str(round(PAUSE))}

    def __init__(self) -> None:
        super().__init__("The service can't count requests at the moment: try again soon.")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a request passes: ``refusal`` is None then. ``quota`` is that of the scarcest rule,
    None if the request wasn't counted."""

    quota: Quota | None = None
    refusal: ServiceError | None = None


FREE = Verdict()
"""What isn't limited."""


def rules_for(path: str, method: str) -> tuple[Rule, ...]:
    """The rules that a request meets. Costs next to nothing where there is none."""
    return _book().rules_for(path, method)


def decide(
    requests: Sequence[Request], *, together: bool = False, now: float | None = None
) -> list[Verdict]:
    """Count requests in their order; with ``together`` all of them or none.

    ``now`` stands for the clock (seconds since the epoch).
    """
    verdicts = _decide_approximate(
        _approximate_counter(settings.REDIS_URL), requests, together=together
    )
    if not _has_exact_rules(requests):
        return verdicts
    claims: list[list[_BucketClaim]] = []
    counted: list[int] = []
    for place, request in enumerate(requests):
        if not verdicts[place].refusal:
            verdicts[place] = _refuse_invalid_account_name(request) or verdicts[place]
        claims.append([] if verdicts[place].refusal else _bucket_claims(request))
        if claims[place]:
            counted.append(place)
    if not counted or (together and any(verdict.refusal for verdict in verdicts)):
        return verdicts
    buckets = [[claim.bucket for claim in claims[place]] for place in counted]
    counts = _counter(settings.REDIS_URL).count(buckets, together=together, now=now)
    full: list[tuple[Bucket, Who]] = []
    for index, place in enumerate(counted):
        if counts is not None:
            verdicts[place] = _scarcer(verdicts[place], _verdict(claims[place], counts[index]))
            full += _nearly_full(claims[place], counts[index])
        elif any(claim.rule.refuse_without_redis for claim in claims[place]):
            verdicts[place] = Verdict(refusal=LimitsUnavailable())
    if full:
        _names(settings.REDIS_URL).keep(full)
    return verdicts


def _has_exact_rules(requests: Sequence[Request]) -> bool:
    # A loop: `any` with a generator costs a microsecond more.
    for request in requests:
        for rule in request.rules:
            if not rule.approximate:
                return True
    return False


def decide_here(request: Request) -> Verdict:
    """Count a request in this process alone, under its approximate rules. Never waits.

    For event loops. Other rules are not applied.
    """
    (verdict,) = _decide_approximate(_process_counter(), [request])
    return verdict


def buckets_of(request: Request) -> list[Bucket]:
    """Return the buckets in which a request is counted."""
    return [claim.bucket for claim in _bucket_claims(request, approximate=None)]


def _decide_approximate(
    counter: ApproximateCounter, requests: Sequence[Request], *, together: bool = False
) -> list[Verdict]:
    if len(requests) == 1:
        outcome = counter.admit(_approximate_claims(requests[0]))
        return [FREE if outcome is None else _approximate_verdict(outcome)]
    if not together:
        return [
            _approximate_verdict(counter.admit(_approximate_claims(request)))
            for request in requests
        ]
    claims: dict[str, ApproximateClaim] = {}
    for request in requests:
        for claim in _approximate_claims(request):
            former = claims.get(claim.key)
            number = former.number + 1 if former else 1
            claims[claim.key] = claim._replace(number=number)
    return [_approximate_verdict(counter.admit(list(claims.values())))] * len(requests)


def _approximate_verdict(outcome: Outcome | None) -> Verdict:
    if outcome is None:
        return FREE
    rule = outcome.rule
    quota = Quota(rule.count, outcome.remaining, ceil(outcome.reset))
    if outcome.passes:
        return Verdict(quota)
    quota = replace(quota, reset=max(1, quota.reset))
    return Verdict(quota, TooManyRequests(quota, rule.message))


def _approximate_claims(request: Request) -> list[ApproximateClaim]:
    rules, _, address, principal, _, _ = request
    user_id = None
    is_master = False
    if principal is not None:
        user_id = principal.user_id
        is_master = principal.is_master
    claims = []
    for rule in rules:
        if not rule.approximate:
            continue
        if not _is_meant(rule, request):
            continue
        if is_master and not rule.include_master:
            continue
        if rule.signed_in and user_id is None:
            continue
        if rule.per == _BY_ADDRESS:
            # Without an address all callers would be one: the proxy doesn't send it.
            if address:
                network = client_network(address)[:_LONGEST_KEY]
                claims.append(ApproximateClaim(rule, rule.name + network, 1, (("ip", network),)))
        elif rule.per == _BY_USER and user_id is not None:
            claims.append(ApproximateClaim(rule, rule.name + user_id, 1, (("user", user_id),)))
        elif _applies(rule, request):
            for who in _callers(rule, request):
                claims.append(ApproximateClaim(rule, _bucket(rule, who).key, 1, who))
    return claims


_BY_ADDRESS = ("ip",)
_BY_USER = ("user",)
_LONGEST_KEY = 64  # characters


class _BucketClaim(NamedTuple):
    """A bucket in which a request is counted, by which rule, and whose it is."""

    rule: Rule
    bucket: Bucket
    who: Who


def _nearly_full(claims: list[_BucketClaim], count: Count) -> Iterator[tuple[Bucket, Who]]:
    for claim, level in zip(claims, count.levels, strict=True):
        if level.remains <= claim.rule.count * (1 - NEARLY):
            yield claim.bucket, claim.who


def _scarcer(first: Verdict, second: Verdict) -> Verdict:
    """The refusal of the two, or what has less left."""
    if first.refusal or second.refusal:
        return first if first.refusal else second
    if first.quota is None or second.quota is None:
        return second if first.quota is None else first
    return min(first, second, key=lambda verdict: verdict.quota.remaining)  # type: ignore[union-attr]


def _verdict(claims: list[_BucketClaim], count: Count) -> Verdict:
    quotas = [
        (Quota(rule.count, level.remains, -(-level.more // 1000)), rule)
        for (rule, _, _), level in zip(claims, count.levels, strict=True)
    ]
    # Of several that are used up, the one that lasts longest: Retry-After must hold.
    quota, rule = min(quotas, key=lambda pair: (pair[0].remaining, -pair[0].reset))
    if count.passes:
        return Verdict(quota)
    return Verdict(quota, TooManyRequests(quota, rule.message))


def _bucket_claims(request: Request, *, approximate: bool | None = False) -> list[_BucketClaim]:
    """The buckets in which a request is counted, and by which rule each; with ``approximate`` None
    those of all rules."""
    return [
        _BucketClaim(rule, _bucket(rule, who), who)
        for rule in request.rules
        if rule.approximate is approximate or approximate is None
        if _applies(rule, request)
        for who in _callers(rule, request)
    ]


def _applies(rule: Rule, request: Request) -> bool:
    principal = request.principal
    if not _is_meant(rule, request):
        return False
    if principal is None:
        return not rule.signed_in and not _SHARED.issuperset(rule.per)
    if principal.is_master:
        return rule.include_master and not rule.signed_in
    return not rule.signed_in or principal.user_id is not None


def _is_meant(rule: Rule, request: Request) -> bool:
    """Whether the rule is about what the request's parameters ask for."""
    if rule.names_account and not any(_names_given(request.parameters)):
        return False
    return rule.by_auth_data is None or rule.by_auth_data is _gives_proof_alone(request.parameters)


def _gives_proof_alone(parameters: tuple[Mapping[str, Any], ...]) -> bool:
    """Whether a user signs in, or up, by another service and gives no password and no address."""
    names = {name for part in parameters for name, value in part.items() if value is not None}
    return "authData" in names and names.isdisjoint(("password", "email"))


def _callers(rule: Rule, request: Request) -> Iterator[Who]:
    return product(*(_who(scope, request) for scope in rule.per))


def _bucket(rule: Rule, who: Who) -> Bucket:
    digest = blake2b(repr((rule.per, who)).encode("utf-8", "replace"), digest_size=16)
    return Bucket(f"limits:{rule.name}:{digest.hexdigest()}", rule.count, rule.window)


# Scopes in which callers from different addresses are counted together.
_SHARED = frozenset(("account", "function", "global"))


def _who(scope: str, request: Request) -> Iterable[tuple[str, str]]:
    """Whom a request stands for: mostly one, of accounts as many as it names."""
    principal = request.principal
    if scope == "account":
        return {("account", name) for name in _accounts(request.parameters)}
    if scope == "function":
        return [("function", request.path.rstrip("/"))]
    if scope == "global":
        return [("global", "")]
    if principal is not None:
        if scope == "user" and principal.user_id is not None:
            return [("user", principal.user_id)]
        if scope == "session" and principal.session_id is not None:
            return [("session", principal.session_id)]
        if scope == "key" and request.key:
            return [("key", request.key)]
    # Who isn't known otherwise is known by the address.
    return [("ip", client_network(request.address))]


_LONGEST_NAME = 1000  # characters


def _refuse_invalid_account_name(request: Request) -> Verdict | None:
    """The refusal of a request that names an account in a way that no layer accepts.

    It is chosen before any bucket: such a spelling must not have a bucket of its own, and nothing
    can be tried with it, so it isn't counted.
    """
    if any("account" in rule.per for rule in request.rules):
        try:
            for name in _names_given(request.parameters):
                check_account_name(name)
        except UsernameMissing as error:
            return Verdict(refusal=error)
    return None


def _accounts(parameters: tuple[Mapping[str, Any], ...]) -> set[str]:
    return {_folded(name) for name in _names_given(parameters)}


def _names_given(parameters: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    """The names of accounts among the parameters, as they are written."""
    for part in parameters:
        for field in ("username", "email"):
            value = part.get(field)
            if isinstance(value, str) and value:
                yield value


def _folded(name: str) -> str:
    """One spelling for all of a name that may mean the same account."""
    return name_key(name[:_LONGEST_NAME]).strip()


@lru_cache(maxsize=4)
def _counter(url: str) -> Counter:
    return Counter(url)


@lru_cache(maxsize=4)
def _approximate_counter(url: str) -> ApproximateCounter:
    return ApproximateCounter(_counter(url), _bucket, _names(url))


@lru_cache(maxsize=1)
def _process_counter() -> ApproximateCounter:
    return ApproximateCounter(None, _bucket)


@lru_cache(maxsize=4)
def _names(url: str) -> Names:
    return Names(url)


class _Opened:
    """The book of the setting as it was last seen."""

    setting: object = None
    book = Book(())


def _book() -> Book:
    setting = service_settings.RATE_LIMITS
    if setting is not _Opened.setting:
        _Opened.book = Book(read(setting))
        _Opened.setting = setting
    return _Opened.book
