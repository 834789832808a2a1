"""The command line of the explorer: judges what is typed, and does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from textual import on

from tpuprof_tui.analysis.selecting.navigation import gone_to, time_of, window_of
from tpuprof_tui.analysis.selecting.state import Scope, Selection, Sort
from tpuprof_tui.analysis.selecting.step_filter import with_step
from tpuprof_tui.analysis.steps.step_lane import step_span
from tpuprof_tui.errors import UsageError
from tpuprof_tui.export.outputs import explorer_outputs, output_named
from tpuprof_tui.formats.parsing import TypedError
from tpuprof_tui.model import Vocabulary
from tpuprof_tui.views.registry import views_of

from ..panes.lines import LinesView
from ..panes.prompt import Note
from ..panes.summary.summary import SummaryPane
from ..panes.table import InstructionTable
from ..panes.timeline.timeline import Timeline
from ..settings.actions import Action
from ..settings.column_names import columns_named
from ..settings.commands import COMMANDS, Command, actions_named, commands_named, listed, split
from ..shell.messages import ChooseStep
from ..shell.watching import WatchingApp
from .filter_search import Finding

#: More digits than any number of instructions has.
_MOST_DIGITS: Final = 12
#: Does a command; gives a fault, or nothing.
Done = Note | None


def _fault(text: str) -> Note:
    return Note(text, fault=True)


class Commanding(Finding):
    """Opens the command line; the explorer owns the state."""

    def _go(self, name: str) -> None:
        raise NotImplementedError

    def _open_groups(self, key: str, *, work_only: bool) -> None:
        raise NotImplementedError

    def export(self, name: str) -> None:
        """Writes one kind of file."""
        raise NotImplementedError

    @property
    def _vocabulary(self) -> Vocabulary:
        return self.session.profile.vocabulary

    def action_command_line(self) -> None:
        """Asks for a command."""
        self.ask("Command", "", self._judged_command, self._taken_command)
        known = (command.said(self._vocabulary).name for command in COMMANDS)
        self.prompt.tell(Note(listed(known, len(COMMANDS)) + ", or any action"))

    def _judged_command(self, text: str) -> Note | None:
        """What the text would do, or could become."""
        word, argument = split(text)
        found = commands_named(word, self._vocabulary)
        if len(found) == 1 and (argument or word in (found[0].name, found[0].id)):
            return self._judged_argument(found[0], argument, len(text) - len(argument))
        names = [command.name for command in found]
        names += [action.text.lower() for action in actions_named(text, self._pane(), self._vocabulary)]
        if not names:
            return _fault("no command: ? lists keys and actions") if text.strip() else None
        return Note(listed(names))

    def _judged_argument(self, command: Command, argument: str, place: int) -> Note | None:
        if command.id == "filter":
            fault = self._fault_of(argument)
            if fault is not None:
                return replace(fault, column=fault.column + place if fault.column >= 0 else -1)
        told = f"{command.name} {command.argument}".strip()
        return Note(f"{told}: {command.help}")

    def _taken_command(self, text: str) -> Done:
        word, argument = split(text)
        found = commands_named(word, self._vocabulary)
        if len(found) == 1:
            doing: Callable[[str], Done] = getattr(self, f"_do_{found[0].id}")
            return doing(argument)
        actions = actions_named(text, self._pane(), self._vocabulary)
        if len({action.id for action in actions}) == 1:
            self.call_after_refresh(self._act, actions[0])
            return None
        if not text.strip():
            return None
        return (
            self._judged_command(text)
            if not actions and not found
            else _fault(
                f"several: {listed([*(each.name for each in found), *(each.text.lower() for each in actions)])}"
            )
        )

    async def _act(self, action: Action) -> None:
        """Does an action on the pane that keys went to before, the prompt being closed."""
        focused = self._focused_before
        if focused is not None and focused.display:
            self.set_focus(focused, scroll_visible=False)
        place = {"app": self.app, "explorer": self}.get(action.pane, focused)
        await self.app.run_action(action.function, place)

    def _pane(self) -> str:
        """The pane that keys went to before."""
        return (self._focused_before.id or "") if self._focused_before is not None else ""

    # commands

    def _do_filter(self, text: str) -> Done:
        fault = self._fault_of(text)
        if fault is None:
            self.apply_filter(text)
        return fault

    def _do_sort(self, text: str) -> Done:
        name, _, way = text.rpartition(" ") if text.endswith((" up", " down")) else (text, "", "")
        found = columns_named(self.session.columns, name)
        if not found:
            return _fault("no such column: sort dur, sort bw up")
        key = found[0].key
        down = (
            way == "down" if way else found[0].kind != "text" and key not in ("start", "end", "order", "core", "port")
        )
        self._set(replace(self.view, sort=Sort(key, down)))
        self._go("table")
        self.call_after_refresh(self.query_one("#table", InstructionTable).choose, key)
        return None

    def _do_group(self, text: str) -> Done:
        found = columns_named(self.session.columns, text)
        if not found:
            hint = self._vocabulary.phrase("group_hint", "group name, group type")
            return _fault(f"no such column: {hint}")
        key = found[0].key
        self.call_after_refresh(lambda: self._open_groups(key, work_only=found[0].kind == "text"))
        return None

    def _do_columns(self, text: str) -> Done:
        names = [name for name in text.replace(",", " ").split() if name]
        found = [columns_named(self.session.columns, name)[:1] for name in names]
        unknown = [name for name, each in zip(names, found, strict=True) if not each]
        if unknown:
            return _fault(f"no such column: {listed(unknown)}")
        self._set(replace(self.view, columns=tuple(dict.fromkeys(each[0].key for each in found))))
        self._go("table")
        return None

    def _do_go(self, text: str) -> Done:
        try:
            time = time_of(text, self.view, self.session.profile.device)
        except TypedError as error:
            return _fault(str(error))
        self._set(gone_to(self.view, time))
        return None

    def _do_window(self, text: str) -> Done:
        try:
            start, end = window_of(text, self.view, self.session.profile.device)
        except TypedError as error:
            return _fault(str(error))
        self._set(self.view.windowed(start, end - start))
        return None

    def _do_core(self, text: str) -> Done:
        headline = self.session.headline
        ends = {"least": headline.idlest, "most": headline.busiest}
        if text in ("", "all"):
            self._set(replace(self.view, selection=Selection(), scope=Scope()))
            return None
        named = ends.get(text)
        groups = self.session.profile.groups
        unit = named.unit if named is not None else groups.numbered(int(text)) if text.isdecimal() else -1
        if unit < 0:
            known = listed(map(str, groups.numbers), 16)
            return _fault(self._vocabulary.say("{units} are {known}, least, most", known=known))
        scope = Scope() if self.view.scope.everything else Scope(unit)
        self._set(replace(self.view, selection=Selection(unit), scope=scope))
        return None

    def _do_view(self, text: str) -> Done:
        try:
            self.query_one("#summary", SummaryPane).choose(text)
        except UsageError:
            return _fault(f"views are {listed((view.id for view in views_of(self._vocabulary)), 20)}")
        self._go("summary")
        return None

    def _do_step(self, text: str) -> Done:
        found = self.session.steps
        if not text:
            self.apply_filter(with_step(self.view.filter, None))
            return None
        number = int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else -1
        if not len(found):
            return _fault(f"there are no {found.word.plural} here, and nothing that is launched repeats")
        if not len(found.numbered(number)):
            return _fault(f"{found.word.plural} are {found.numbers_text(16)}")
        self.choose_step(number)
        return None

    @on(ChooseStep)
    def step_chosen(self, message: ChooseStep) -> None:
        """A pane asks for a step."""
        message.stop()
        self.choose_step(message.number)

    def choose_step(self, number: int) -> None:
        """All panes show what belongs to a step, and the window its time."""
        span = step_span(self.session, number)
        if span is not None:
            view = replace(self.view, range=None, anchor=None)
            self._set(view.windowed(span[0], max(span[1] - span[0], 1)))
        self.apply_filter(with_step(self.view.filter, number))

    def _do_row(self, text: str) -> Done:
        table = self.query_one("#table", InstructionTable)
        if not text.replace(",", "").isdecimal():
            return _fault("a row's number: row 120")
        self._go("table")
        self.call_after_refresh(lambda: table.go_to(int(text.replace(",", "")) - 1))
        return None

    def _do_move(self, text: str) -> Done:
        lines = text.replace(",", "")
        if not lines.lstrip("+-").isdecimal() or len(lines) > _MOST_DIGITS:
            return _fault("how many lines on or back: move 10, move -10")
        self.call_after_refresh(self._move, int(lines))
        return None

    def _move(self, lines: int) -> None:
        """Moves within the pane that keys went to before: what a count before a key does elsewhere."""
        pane = self._focused_before
        if isinstance(pane, InstructionTable):
            pane.go_to(pane.rows.position + lines)
        elif isinstance(pane, Timeline):
            pane.step_instructions(lines)
        elif isinstance(pane, LinesView):
            pane.move(lines)

    def _do_export(self, text: str) -> Done:
        output = output_named(text, self._vocabulary)
        if output is None:
            keys = [each.key for each in explorer_outputs(self._vocabulary)]
            return _fault(f"kinds are {listed(keys, len(keys))}")
        self.call_after_refresh(self.export, output.id)
        return None

    def _do_open(self, text: str) -> Done:
        path = Path(text).expanduser()
        if not text or not path.exists():
            return _fault("the path of a capture; O lists those beside this one")
        if isinstance(self.app, WatchingApp):
            self.call_after_refresh(self.app.switch_to, str(path))
        return None

    def _do_quit(self, _: str) -> Done:
        self.call_after_refresh(self.app.run_action, "quit", self.app)
        return None
