"""Chat: a model of any OpenAI-compatible server, one attempt a call."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from quipu.errors import Overloaded, Refused
from quipu.model.chat import ChatRequest, Completion, FinishReason, TokenCount
from quipu.ports.providers import TextSink, ignore_text
from quipu.providers.openai.endpoint import Endpoint, Target
from quipu.providers.openai.explain import explained
from quipu.providers.openai.fields import at
from quipu.providers.openai.form import ChatParameters, Form, adapted, first_form, write_body
from quipu.providers.openai.room import room_for_reply, states_window
from quipu.providers.openai.said import Fault, Said, excerpt, read_said
from quipu.providers.openai.session import Session, deadline
from quipu.providers.openai.sse import Events
from quipu.providers.openai.transcript import Transcript

if TYPE_CHECKING:
    from quipu.providers.openai.client import Answer

_MAX_FORMS = 8  # ways of writing a request that are tried before its error is believed
_OUT_OF_TOKENS = "could not finish the message because max_tokens"  # said where reasoning took all of them
# More than a reply of the tokens asked for has: a server that goes on beyond is not listened to, for it is paid.
_CHARS, _CHARS_A_TOKEN = 2_000, 8
_AFTER_END_S = 0.25  # how long to wait for a server to hang up after it has said it is done

_DEFAULTS = ChatParameters()


class OpenAIChat:
    """Asks one model for chat completions; what its server turns out not to take is remembered and not sent again.

    `count_tokens` estimates what a server does not count. Streams where somebody watches or `parameters.is_streamed`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        count_tokens: Callable[[str], int],
        parameters: ChatParameters = _DEFAULTS,
    ) -> None:
        self.target = Target(endpoint=endpoint, model=model)
        self.session = Session(self.target)
        self._count = count_tokens
        self._parameters = parameters
        self._form = first_form(self.target)
        self._url = endpoint.url("/chat/completions", model)

    @property
    def identity(self) -> str:
        """Provider, model and the parameters that change replies; of the address only a custom server's host."""
        parameters = self._parameters.identity()
        return f"{self.target.name}?{parameters}" if parameters else self.target.name

    @property
    def form(self) -> Form:
        """What the server takes, as far as it is known."""
        return self._form

    async def complete(self, request: ChatRequest, on_text: TextSink = ignore_text) -> Completion:
        """Return the reply, as the port promises; asks again at once only for a request the server rejected unread."""
        for _ in range(_MAX_FORMS):
            form = self._form
            try:
                return await self._ask(request, form, on_text)
            except Fault as fault:
                said = fault.said
            if _OUT_OF_TOKENS in said.words:
                return self._unwritten(request)
            if room := room_for_reply(said):
                return await self._ask_for_less(request, form, room, on_text)
            better = None if states_window(said) else adapted(form, said)
            if better is None:
                break
            if self._form is form:  # another call may have learnt the same meanwhile
                self._form = better
        raise await explained(said, self.session)

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self.session.aclose()

    async def _ask(self, request: ChatRequest, form: Form, on_text: TextSink) -> Completion:
        """Send one request. Raises Fault where the server answers with an error."""
        is_streamed = form.can_stream and (self._parameters.is_streamed or on_text is not ignore_text)
        body = write_body(request, self.target, form, self._parameters, is_streamed=is_streamed)
        timeouts = self.target.endpoint.timeouts
        end = deadline(timeouts.total_s)
        transcript = Transcript(_CHARS + _CHARS_A_TOKEN * request.max_output_tokens)
        if not is_streamed:
            said = await self.session.post_whole(self._url, body, end)
            on_text(self._whole(said, transcript))
            return self._completion(transcript, request)
        async with self.session.post(self._url, body, min(end, deadline(timeouts.silence_s))) as answer:
            if answer.is_stream:
                await self._follow(answer, transcript, on_text, end)
            else:
                said = read_said(answer.status, answer.headers, await answer.body(end))
                on_text(self._whole(said, transcript))
        return self._completion(transcript, request)

    async def _ask_for_less(self, request: ChatRequest, form: Form, room: int, on_text: TextSink) -> Completion:
        """Ask again for no more than there is room for beside the request in the context window."""
        most = min(room, form.most_output or room)
        try:
            return await self._ask(request, replace(form, most_output=most), on_text)
        except Fault as fault:
            said = fault.said
        raise await explained(said, self.session)

    async def _follow(self, answer: "Answer", transcript: Transcript, on_text: TextSink, end: float) -> None:
        """Read a stream to its end. What breaks it off after some text leaves the transcript as it is."""
        events = Events()
        silence_s = self.target.endpoint.timeouts.silence_s
        until = min(end, deadline(silence_s))
        while True:
            try:
                piece = await answer.piece(until)
                found = events.feed(piece) if piece else events.end()
            except Overloaded:
                if transcript.is_done or transcript.text:
                    return
                raise
            for event in found:
                if text := transcript.take(event):
                    on_text(text)
            if not piece or transcript.is_over:
                return
            if found:  # a comment only says that the connection lives
                until = min(end, deadline(_AFTER_END_S if transcript.is_done else silence_s))

    def _whole(self, said: Said, transcript: Transcript) -> str:
        """Return the text of a reply that came whole. Raises Fault where it is none."""
        if said.body is None and not said.is_html and said.message.lstrip().startswith("{"):
            raise Overloaded(f"{self.target.place} broke off within its reply.", remedy="Try again.", may_cost=True)
        if not isinstance(at(said.body, "choices"), list):
            raise Fault(said)
        transcript.is_done = True
        return transcript.take_object(said.body)

    def _completion(self, transcript: Transcript, request: ChatRequest) -> Completion:
        """Return what has come. Raises Refused where it was withheld, Overloaded where there is none."""
        finish, text, place = transcript.finish, transcript.text, self.target.place
        if not text and (transcript.refusal or finish is FinishReason.FILTERED):
            reason = excerpt(self.target.endpoint.mask(transcript.refusal)) or "its filter withheld the reply"
            raise Refused(
                f"{place} refused: {reason}", remedy="The same text will be refused again; leave it out.", may_cost=True
            )
        if not transcript.n_replies or (finish is FinishReason.INTERRUPTED and not text):
            raise Overloaded(f"{place} ended its reply before any text.", remedy="Try again.", may_cost=True)
        self.session.has_answered = True
        counted = transcript.tokens if transcript.tokens and (transcript.tokens.output or not text) else None
        return Completion(
            text=text,
            finish=finish,
            tokens=counted or self._estimate(transcript, request),
            is_estimate=counted is None,
        )

    def _unwritten(self, request: ChatRequest) -> Completion:
        """Return the empty reply of a model that has spent its limit on reasoning: longer may do."""
        tokens = replace(self._estimate(Transcript(), request), output=request.max_output_tokens)
        return Completion(text="", finish=FinishReason.LENGTH, tokens=tokens, is_estimate=True)

    def _estimate(self, transcript: Transcript, request: ChatRequest) -> TokenCount:
        given = sum(self._count(message.text) for message in request.messages)
        return TokenCount(input=given, output=self._count(transcript.generated))
