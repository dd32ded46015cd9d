"""The lines under `steps` of a problem file: each is one step, or the several that a whole layer becomes."""

import re
from collections.abc import Collection
from dataclasses import replace

from torch import Tensor

from regard.support.errors import Misuse
from regard.worked.errors import FormulaError, Site, Span
from regard.worked.expanding import Expander, layers_in, origins
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
        site = Site(tree)
        try:
            formula = parse_formula(tree.text, self.known, self.vocabulary, FUNCTIONS)
            if calls := layers_in(formula.root, LAYERS):
                self._expand(name, formula, tree, calls)
            else:
                self._take(ProblemStep(name, formula, tree.at.line, site))
        except FormulaError as error:
            if tree.within and tree.plain and error.said.endswith("not closed"):
                hint = "; within { } a comma ends a text, so put quotes around this formula"
                error = FormulaError(error.said + hint, error.at, error.source)
            raise Misuse(site.told(error, name)) from None

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Of what is given and of all steps that can be worked."""
        return {name: tuple(value.shape) for name, value in self._so_far().items()}

    def _expand(self, name: str, formula: Formula, tree: Text, calls: Collection[Span]) -> None:
        expander = Expander(name, LAYERS, {*self.known, *self.names}, self._so_far())
        try:
            root = formula.root.rewritten(expander)
        except FormulaError as error:
            raise error.within(formula.source) from None
        on_one_line = re.sub(r"(?<=[(\[]) | (?=[)\]])", "", " ".join(formula.source.split()))
        layer = f"{name}: {on_one_line}"
        for each, step in [*expander.steps, (name, root)]:
            if self.size <= MOST_PARTS:  # what is too much is refused by whoever asked, after the line
                self._take(self._written_out(each, step, Site(tree, layer, call=step.at), calls))

    def _written_out(self, name: str, root: Node, site: Site, calls: Collection[Span]) -> ProblemStep:
        """Written out and read again, so that each part knows its place in the text, and beside it the line's."""
        try:
            formula = parse_formula(str(root), self.known, self.vocabulary)
        except FormulaError as error:
            raise Misuse(site.told(error, name)) from None
        site = replace(site, origins=origins(formula.root, root, calls))
        return ProblemStep(name, formula, site.tree.at.line, site)

    def _take(self, step: ProblemStep) -> None:
        self.size += sum(1 for _ in step.formula.root.walk())
        self.known[step.name] = None
        self.steps.append(step)

    def _so_far(self) -> dict[str, Tensor]:
        """The values a layer may ask the shapes of. Where a step cannot be worked, working the problem says why."""
        for step in self.steps[self._worked :]:
            try:
                self._values[step.name] = worked(step, self._values, self._budget)
            except (Misuse, KeyError):
                break
        self._worked = len(self.steps)
        return self._values
