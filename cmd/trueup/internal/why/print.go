// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"trueup.dev/cmd/trueup/internal/screen"
	"trueup.dev/console"
	"trueup.dev/internal/text/elapsed"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

type printer struct {
	*screen.Screen
	now time.Time
}

// line prints an indented line.
func (p *printer) line(depth int, parts ...string) {
	text := []string{}
	for _, part := range parts {
		if part != "" {
			text = append(text, part)
		}
	}
	p.Print(strings.Repeat("  ", depth) + strings.Join(text, "  ") + "\n")
}

// failed prints an error, which may have several lines.
func (p *printer) failed(depth int, err string) {
	for line := range strings.Lines(err) {
		p.line(depth, p.Paint(screen.Red, strings.TrimRight(line, "\n")))
	}
}

// object prints an object with its last runs.
func (p *printer) object(h console.Object, runs int) {
	kept := h.History.History
	p.line(
		0, p.Paint(screen.Bold, h.Object.Object.String()), p.state(h.State),
		p.Paint(screen.Faint, "controller "+h.Controller),
	)
	if h.Error != "" {
		text := "failed"
		if h.Step != "" {
			text += " in step " + p.Paint(screen.Bold, h.Step)
		}
		if h.FailedInRow > 1 {
			text += fmt.Sprintf(", %d times in a row, first %s", h.FailedInRow, elapsed.Ago(h.FailingSince, p.now))
		}
		p.line(1, text)
		p.failed(2, h.Error)
	}
	if h.State == recorder.StateHalted {
		p.line(1, "halted in step "+p.Paint(screen.Bold, h.Step)+colon(h.HaltReason))
	}
	if h.NotReady != "" {
		notReady := h.NotReady
		if h.Error != "" {
			notReady = strings.Replace(notReady, h.Error, "the error above", 1)
		}
		p.line(1, "Ready is "+string(h.Ready)+colon(notReady))
	}
	for _, dropped := range h.Dropped {
		p.line(1, p.Paint(screen.Yellow, dropped.String()))
	}
	for _, problem := range h.Problems {
		if h.State.IsTrouble() {
			break // another cause is shown
		}
		text := "a mistake in the controller" + colon(problem.Text)
		if problem.Step != "" {
			text = "a mistake in step " + p.Paint(screen.Bold, problem.Step) + colon(problem.Text)
		}
		p.line(1, p.Paint(screen.Yellow, text))
	}
	if h.Occupied != nil {
		for line := range strings.SplitSeq(occupied(h.Controller, *h.Occupied, p.now), "\n") {
			p.line(1, p.Paint(screen.Yellow, line))
		}
	}
	if h.Loop != nil {
		p.line(1, fmt.Sprintf("loops: %d reconciles in %s", h.Loop.Reconciles, elapsed.Duration(h.Loop.Within)))
		for _, repeated := range h.Loop.Repeats {
			p.line(2, repeated)
		}
	}
	p.line(1, fmt.Sprintf(
		"%d runs: %d failed, %d without a change; %d writes", h.Runs, h.Failures, h.NoOps, h.Writes,
	))
	if h.RunningSince.IsZero() {
		p.line(1, "next run: "+p.next(h.Next))
	} else {
		text := "running for " + elapsed.Duration(p.now.Sub(h.RunningSince))
		if len(kept) > 0 && kept[0].OpenStep() != "" {
			text += " in step " + p.Paint(screen.Bold, kept[0].OpenStep())
		}
		p.line(1, text)
	}
	for _, run := range kept[:min(runs, len(kept))] {
		p.line(0)
		p.run(run, h.Error)
	}
	if earlier := len(kept) - runs; earlier > 0 {
		p.line(0)
		p.line(0, p.Paint(screen.Faint, fmt.Sprintf("%d earlier runs are kept: see --runs", earlier)))
	}
}

// colon returns a text after a colon, or "" without a text.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func (p *printer) state(state recorder.State) string {
	switch {
	case state.IsTrouble():
		return p.Paint(screen.Red, string(state))
	case state == recorder.StateSucceeded:
		return p.Paint(screen.Green, string(state))
	}
	return p.Paint(screen.Yellow, string(state))
}

func (p *printer) next(next *recorder.Next) string {
	switch {
	case next == nil:
		return "on the next event"
	case next.Retry:
		return "retry with back-off"
	case p.now.Sub(next.At) >= time.Second:
		return "due, " + elapsed.Ago(next.At, p.now)
	}
	return elapsed.Ago(next.At, p.now)
}

// run prints a run. known is an error that is printed already.
func (p *printer) run(run recorder.Run, known string) {
	outcome := string(run.Outcome)
	style := screen.Green
	switch {
	case run.Outcome.IsFailure():
		style = screen.Red
	case run.Outcome == recorder.NoOp:
		outcome, style = "No change", screen.Plain
	case run.Outcome == recorder.Running:
		style = screen.Yellow
	}
	duration := ""
	if run.Duration > 0 {
		duration = elapsed.Duration(run.Duration)
	}
	p.line(0, p.Paint(screen.Bold, elapsed.Ago(run.Started, p.now)), p.Paint(style, outcome), duration,
		p.Paint(screen.Faint, run.Started.UTC().Format(time.RFC3339)+" "+run.ID))
	for _, cause := range run.Causes {
		p.cause(cause, run.Error)
	}
	if run.OmittedCauses > 0 {
		p.line(1, fmt.Sprintf("because  %d more causes", run.OmittedCauses))
	}
	p.calls(1, run.Calls, run.CachedReads, known)
	for i, step := range run.Steps {
		p.step(step, isShownBelow(step, run.Steps[i+1:]), known)
	}
	if run.Error != "" && run.Error != known && !strings.Contains(errorsOf(run), run.Error) {
		p.failed(1, run.Error)
	}
	if run.NoOpsBefore > 0 {
		p.line(0, p.Paint(screen.Faint, fmt.Sprintf("(%d runs without a change before)", run.NoOpsBefore)))
	}
}

// errorsOf returns the errors that are printed with the steps and calls of a run.
func errorsOf(run recorder.Run) string {
	all := []string{}
	for _, call := range run.Calls {
		all = append(all, call.Error)
	}
	for _, step := range run.Steps {
		all = append(all, step.Error)
	}
	return strings.Join(all, "\n")
}

func (p *printer) cause(cause recorder.Cause, err string) {
	text := "because  " + cause.String()
	if cause.By != "" {
		text += " by " + cause.By
	}
	switch cause.Error {
	case "":
	case err:
		text += ": the same error"
	default:
		text += ": " + cause.Error
	}
	p.line(1, text)
	p.changes(3, cause.Changes)
}

func (p *printer) changes(depth int, changes []observe.Change) {
	for _, change := range changes {
		before, after := change.Before, change.After
		if before == "" && after == "" { // the path of a condition says it all
			p.line(depth, change.Path)
			continue
		}
		if before == "" {
			before = "not set"
		}
		if after == "" {
			after = "removed"
		}
		p.line(depth, change.Path+":", p.Paint(screen.Red, before)+" → "+p.Paint(screen.Green, after))
	}
}

// isShownBelow reports whether a step below has the same outcome.
func isShownBelow(step recorder.Step, later []recorder.Step) bool {
	return slices.ContainsFunc(later, func(s recorder.Step) bool {
		n := len(step.Path)
		return len(s.Path) > n && slices.Equal(s.Path[:n], step.Path) && s.Outcome == step.Outcome
	})
}

// step prints a step that failed, stopped the steps after it, has not finished, or called the API. below reports
// whether a step below it has the same outcome.
func (p *printer) step(step recorder.Step, below bool, known string) {
	outcome := ""
	switch step.Outcome {
	case observe.Failed, observe.Panicked:
		outcome = p.Paint(screen.Red, string(step.Outcome))
	case observe.Halted:
		outcome = p.Paint(screen.Yellow, string(step.Outcome))
	case "":
		outcome = p.Paint(screen.Yellow, "not finished")
	}
	if len(step.Calls) == 0 && step.Error == "" && (outcome == "" || below) {
		return
	}
	duration := ""
	if step.Outcome != "" {
		duration = p.Paint(screen.Faint, elapsed.Duration(step.Duration))
	}
	p.line(1, "step     "+strings.Join(step.Path, "."), outcome, duration)
	shown := false
	for _, call := range step.Calls {
		shown = shown || call.Error != "" && strings.Contains(step.Error, call.Error)
	}
	p.calls(3, step.Calls, 0, known)
	if !shown && (step.Error == "" || !strings.Contains(known, step.Error)) {
		p.failed(3, step.Error)
	}
}

func (p *printer) calls(depth int, calls []recorder.Call, cachedReads int, known string) {
	for _, call := range calls {
		notes := ""
		if n := call.Notes(); len(n) > 0 {
			notes = "(" + strings.Join(n, ", ") + ")"
		}
		p.line(depth, call.String(), notes, p.Paint(screen.Faint, elapsed.Duration(call.Duration)))
		if call.Error != "" && strings.Contains(known, call.Error) {
			p.failed(depth+1, "failed with the error above")
		} else {
			p.failed(depth+1, call.Error)
		}
		p.changes(depth+1, call.Changes)
	}
	if cachedReads > 0 && len(calls) > 0 {
		p.line(depth, p.Paint(screen.Faint, fmt.Sprintf("%d reads from caches", cachedReads)))
	}
}
