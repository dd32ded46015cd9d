"""The lines under `steps` of a problem file: each is one step, or the several that a whole layer becomes."""

from collections.abc import Collection
from typing import NoReturn

from torch import Tensor

from regard.support.errors import Misuse
from regard.worked.errors import FormulaError, formula_told
from regard.worked.expanding import Expander, calls_a_layer
from regard.worked.formula import Formula, parse_formula
from regard.worked.grammar import Vocabulary
from regard.worked.layers import LAYERS
from regard.worked.limits import MOST_PARTS
from regard.worked.lines import Text
from regard.worked.nodes import Node
from regard.worked.problem import Problem, ProblemStep
from regard.worked.solution import Budget, worked

FUNCTIONS = {name: layer.function for name, layer in LAYERS.items()}


class Lines:
    """Reads one line after the other; what is known so far may stand in the next."""

    def __init__(self, problem: Problem, names: Collection[str]) -> None:
        """`names` are those of all lines, also of the ones to come."""
        self.problem, self.names = problem, names
        rows = {name: sides[0] for name, sides in problem.axes.items() if sides and sides[0]}
        self.vocabulary = Vocabulary(problem.words, rows)
        self.known: dict[str, None] = dict.fromkeys(problem.given)
        self.steps: list[ProblemStep] = []
        self.size = 0
        """Names, numbers and signs in all formulas so far."""
        self._values: dict[str, Tensor] = {name: given.value for name, given in problem.given.items()}
        self._budget = Budget()
        self._worked = 0

    def add(self, name: str, tree: Text) -> None:
        """The step, or the steps, of one line."""
        column = column_of(tree)
        try:
            formula = parse_formula(tree.text, self.known, self.vocabulary, FUNCTIONS)
            if calls_a_layer(formula.root, LAYERS):
                self._expand(name, formula, tree.at.line)
            else:
                self._take(ProblemStep(name, formula, tree.at.line, column=column))
        except FormulaError as error:
            if tree.within and tree.plain and error.said.endswith("not closed"):
                hint = "; within { } a comma ends a text, so put quotes around this formula"
                error = FormulaError(error.said + hint, error.at, error.source)
            self._refuse(error, name, tree.at.line, column)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of what is given and of all steps that can be worked."""
        return {name: tuple(value.shape) for name, value in self._so_far().items()}

    def _expand(self, name: str, formula: Formula, line: int) -> None:
        layer = f"{name}: {' '.join(formula.source.split())}"
        expander = Expander(name, LAYERS, {*self.known, *self.names}, self._so_far())
        try:
            root = formula.root.rewritten(expander)
        except FormulaError as error:
            raise error.within(formula.source) from None
        for each, step in [*expander.steps, (name, root)]:
            if self.size <= MOST_PARTS:  # what is too much is refused by whoever asked, after the line
                self._take(ProblemStep(each, self._formula(each, step, line, layer), line, layer))

    def _formula(self, name: str, root: Node, line: int, layer: str) -> Formula:
        """Written out and read again, so that each part knows its place in the text."""
        try:
            return parse_formula(str(root), self.known, self.vocabulary)
        except FormulaError as error:
            self._refuse(error, name, line, None, layer)

    def _take(self, step: ProblemStep) -> None:
        self.size += sum(1 for _ in step.formula.root.walk())
        self.known[step.name] = None
        self.steps.append(step)

    def _so_far(self) -> dict[str, Tensor]:
        """The values a layer may ask the shapes of. Where a step cannot be worked, working the problem says why."""
        for step in self.steps[self._worked :]:
            try:
                self._values[step.name] = worked(step, self._values, "", self._budget)
            except (Misuse, KeyError):
                break
        self._worked = len(self.steps)
        return self._values

    def _refuse(self, error: FormulaError, name: str, line: int, column: int | None, layer: str = "") -> NoReturn:
        raise Misuse(formula_told(error, self.problem.path, name, line, column, layer))


def column_of(tree: Text) -> int | None:
    """Where a formula's first character stands; unknown where it runs over lines or holds escapes."""
    if not tree.one_line:
        return None
    leading = len(tree.text) - len(tree.text.lstrip())
    return tree.at.column + leading + (0 if tree.plain else 1)
