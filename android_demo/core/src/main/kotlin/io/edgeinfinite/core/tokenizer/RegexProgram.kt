package io.edgeinfinite.core.tokenizer

/** A step of matching a regular expression. */
internal sealed interface Instruction {
    /** One code point of a set. */
    class Take(
        val set: CharSet,
    ) : Instruction

    /** From [least] to [most] code points of a set, as many as possible; [isFinal]: never fewer. */
    class TakeRun(
        val set: CharSet,
        val least: Int,
        val most: Int,
        val isFinal: Boolean,
    ) : Instruction

    /** Goes on at [first], and where that fails at [second]. */
    class Fork(
        var first: Int,
        var second: Int,
    ) : Instruction

    class Jump(
        var to: Int,
    ) : Instruction

    /** Goes on if [body] matches here, or if it doesn't; takes nothing. */
    class Look(
        val body: RegexProgram,
        val isNegative: Boolean,
    ) : Instruction

    /** What [body] matches first, and nothing else. */
    class Atomic(
        val body: RegexProgram,
    ) : Instruction

    data object AtEnd : Instruction

    data object Accept : Instruction
}

/** A regular expression as steps, from the first to [Instruction.Accept]. */
internal class RegexProgram private constructor(
    val steps: Array<Instruction>,
) {
    companion object {
        /**
         * @throws EdgeInfiniteException a group that can be empty is repeated without end.
         */
        fun of(expression: Expression): RegexProgram {
            val steps = ArrayList<Instruction>()
            add(expression, steps)
            steps += Instruction.Accept
            return RegexProgram(steps.toTypedArray())
        }

        private fun add(
            expression: Expression,
            to: ArrayList<Instruction>,
        ) {
            when (expression) {
                is Expression.One -> to += Instruction.Take(expression.set)
                is Expression.Sequence -> expression.parts.forEach { add(it, to) }
                is Expression.Choice -> addChoice(expression.options, to)
                is Expression.Repeat -> addRepeat(expression, to)
                is Expression.LookAhead -> to += Instruction.Look(of(expression.body), expression.negative)
                is Expression.End -> to += Instruction.AtEnd
            }
        }

        private fun addChoice(
            options: List<Expression>,
            to: ArrayList<Instruction>,
        ) {
            val jumps = ArrayList<Instruction.Jump>()
            for (option in options.dropLast(1)) {
                val fork = Instruction.Fork(to.size + 1, 0).also { to += it }
                add(option, to)
                jumps += Instruction.Jump(0).also { to += it }
                fork.second = to.size
            }
            add(options.last(), to)
            for (jump in jumps) jump.to = to.size
        }

        private fun addRepeat(
            loop: Expression.Repeat,
            to: ArrayList<Instruction>,
        ) {
            val body = loop.body
            val isFinal = loop.mode == Expression.Mode.POSSESSIVE
            if (body is Expression.One && loop.mode != Expression.Mode.LAZY) {
                to += Instruction.TakeRun(body.set, loop.least, loop.most, isFinal)
            } else if (isFinal) {
                to += Instruction.Atomic(of(loop.copy(mode = Expression.Mode.GREEDY)))
            } else {
                repeat(loop.least) { add(body, to) }
                addOptional(loop, to)
            }
        }

        /** What may be repeated beyond the least. */
        private fun addOptional(
            loop: Expression.Repeat,
            to: ArrayList<Instruction>,
        ) {
            val isEndless = loop.most == Int.MAX_VALUE
            if (isEndless && leastLength(loop.body) == 0) throw unsupportedTokenizer("an empty group, repeated")
            val forks = ArrayList<Instruction.Fork>()
            repeat(if (isEndless) 1 else maxOf(0, loop.most - loop.least)) {
                val start = to.size
                forks += Instruction.Fork(start + 1, start + 1).also { to += it }
                add(loop.body, to)
                if (isEndless) to += Instruction.Jump(start)
            }
            for (fork in forks) if (loop.mode == Expression.Mode.LAZY) fork.first = to.size else fork.second = to.size
        }
    }
}

/** Fewest code points that an expression matches. */
private fun leastLength(expression: Expression): Int =
    when (expression) {
        is Expression.One -> 1
        is Expression.Sequence -> expression.parts.sumOf(::leastLength)
        is Expression.Choice -> expression.options.minOf(::leastLength)
        is Expression.Repeat -> expression.least * leastLength(expression.body)
        is Expression.LookAhead, is Expression.End -> 0
    }

/**
 * Runs programs over one text. Not thread-safe.
 *
 * @param text its code points.
 */
internal class RegexMatcher(
    private val text: IntArray,
) {
    /** Where matching can go on: a step, a place in the text, and the last place to fall back to. */
    private var ways = IntArray(FIELDS * 64)
    private var size = 0

    /** The end of the match from [start] on, or -1. */
    fun match(
        program: RegexProgram,
        start: Int,
    ): Int {
        val bottom = size
        var step = 0
        var at = start
        while (true) {
            val next = step + 1
            when (val now = program.steps[step]) {
                is Instruction.Take -> if (at < text.size && text[at] in now.set) at += 1 else at = FAILED
                is Instruction.TakeRun -> at = takeRun(now, at, next)
                is Instruction.Fork -> {
                    push(now.second, at, at)
                    step = now.first - 1
                }
                is Instruction.Jump -> step = now.to - 1
                is Instruction.Look -> if ((match(now.body, at) >= 0) == now.isNegative) at = FAILED
                is Instruction.Atomic -> at = match(now.body, at)
                is Instruction.AtEnd -> if (at < text.size) at = FAILED
                is Instruction.Accept -> {
                    size = bottom
                    return at
                }
            }
            step += 1
            if (at >= 0) continue
            if (size == bottom) return FAILED
            step = ways[size - FIELDS]
            at = back()
        }
    }

    private fun takeRun(
        run: Instruction.TakeRun,
        at: Int,
        next: Int,
    ): Int {
        val most = if (run.most < text.size - at) at + run.most else text.size
        var end = at
        while (end < most && text[end] in run.set) end += 1
        val least = at + run.least
        if (end < least) return FAILED
        if (end > least && !run.isFinal) push(next, end - 1, least)
        return end
    }

    /** The place of the newest way, which stays, one place shorter, while it has others. */
    private fun back(): Int {
        val at = ways[size - 2]
        if (at > ways[size - 1]) ways[size - 2] = at - 1 else size -= FIELDS
        return at
    }

    private fun push(
        step: Int,
        at: Int,
        last: Int,
    ) {
        if (size == ways.size) ways = ways.copyOf(2 * size)
        ways[size] = step
        ways[size + 1] = at
        ways[size + 2] = last
        size += FIELDS
    }

    private companion object {
        const val FIELDS = 3
        const val FAILED = -1
    }
}
