"""What may be true of an HTTP exchange, or of a message that it carried, because of what came before."""

from typing import Final

from mcpsniff.protocol.oauth import STEPS, fact_of

HTTP_FACTS: Final = {
    "session-unknown": "the request names a session that no server has begun here",
    "session-ended": "the request names a session that had ended at ``t``",
    "session-missing": "the request names no session where its connection or server has one",
    "session-changed": "the response names another session than the request's",
    "resume-unknown": "Last-Event-ID names an event that was never sent in this session; ``text`` is the id",
    "resumed-early": "the stream is resumed sooner after its end at ``t`` than its ``retry``; ``text``: milliseconds",
    "ended-unanswered": "the response ended, and request ``n`` that it was to answer is open",
    "endpoint-not-first": "an event came on a stream of HTTP+SSE before the one that names the endpoint",
    "endpoint-repeated": "a second event names an endpoint",
    "event-id-repeated": "an event has an id that event ``n`` of this session has had; ``text`` is the id",
    "unreachable": "mcpsniff could not connect to the upstream, for the first time since it last answered",
    "expects-tls": "the server says, by an alert of TLS or in words, that it expects TLS",
    "never-answered": "the server hung up, and has not answered any request so far",
    "tunnel": "the connection turned into something else than HTTP",
    "token-missing": "the request has no Authorization, and earlier ones of this session had it",
    **{fact_of(step): f"{meaning}; of ``text``" for step, meaning in STEPS.items()},
}
"""What is true of an HTTP exchange because of what came before it. Each is there once per exchange."""

HTTP_MESSAGE_FACTS: Final = {
    "redelivered": "the event came again on a resumed stream; ``n`` is the message of its first delivery",
    "answer-on-get-stream": "a response on a stream that was not opened by a POST",
    "answer-on-foreign-stream": "a response on the stream of another POST than the one that asked",
    "progress-on-foreign-stream": "progress of a request on the stream of another POST than the one that asked",
    "on-two-streams": "a message that has just come on another stream, too, as message ``n``",
    "after-response": "a message on the stream of a POST after its response, message ``n``",
    "answered-by-http": "an error without an id, in the body of the response to the request it answers",
}
"""What is true of a message because of the HTTP exchange that carried it."""
