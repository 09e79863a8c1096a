// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/search"
	"trueup.dev/converge/internal/state"
)

// UpgradeReport is the result of [CheckUpgrade].
type UpgradeReport struct {
	// Failure is nil if no failure was found.
	Failure     *Failure
	Certificate UpgradeCertificate

	// failed is the plan of the failure.
	failed *plan
}

// UpgradeCertificate counts what was tried. Without a failure, and if Upgrade.SinglesLeft is 0, it proves that no
// upgrade at any point of the run of the old version leads to another state.
type UpgradeCertificate struct {
	// Upgrade counts the runs of the old version and then the new one. Points are the points of the old version's run
	// without faults, Singles are upgrades at these points, Recoveries are further faults after an upgrade, and Pairs are
	// faults shortly before one.
	Upgrade Certificate
	// Rollback counts the runs of the old version, the new one, and the old one again. Singles are rollbacks after
	// upgrades, and Recoveries further faults after both. It is nil if a rollback is not supported, or was not tried after
	// a failure.
	Rollback *Certificate
	// Changes describes what an upgrade changes while the controller is idle, although users change nothing.
	Changes []string
	// LeftOut lists what was not checked or not tried, with the reasons, as in [Certificate].
	LeftOut []string
	Elapsed time.Duration

	failed bool
}

// String formats the certificate as one paragraph, and lines about changes, advice and what is left out.
func (c UpgradeCertificate) String() string {
	var b strings.Builder
	u := c.Upgrade
	b.WriteString(search.Verdict(
		c.failed, "converges after an upgrade at every point", "converges after %d of %d upgrades", u.Singles, u.SinglesLeft,
		c.LeftOut,
	))
	fmt.Fprintf(
		&b, ": %s of the old version with %d ends of the process, %d of them equivalent to others, %d run",
		phrase.Plural(u.Points, "point"), u.Enumerated, u.Pruned, u.Singles,
	)
	b.WriteString(search.SinglesLeft(u.SinglesLeft, c.failed))
	fmt.Fprintf(&b, "; %d faults after an upgrade%s", u.Recoveries, search.Left(u.RecoveriesLeft))
	fmt.Fprintf(&b, "; %d of %d shortly before", u.Pairs, u.PairsInAll)
	if r := c.Rollback; r != nil {
		fmt.Fprintf(
			&b, "; %d rollbacks%s; %d faults after a rollback%s", r.Singles, search.Left(r.SinglesLeft), r.Recoveries,
			search.Left(r.RecoveriesLeft),
		)
		u.Random += r.Random
	}
	fmt.Fprintf(&b, "; %d random schedules; seed %d", u.Random, u.Seed)
	var changes []string
	for _, change := range c.Changes {
		changes = append(changes, "an upgrade changes "+change)
	}
	advice := u.Advice
	if c.Rollback != nil {
		advice = slices.Concat(advice, c.Rollback.Advice)
	}
	slices.Sort(advice)
	return search.Certificate(b.String(), changes, slices.Compact(advice), c.LeftOut)
}

// upgradeChanges collects what upgrades at rest change.
type upgradeChanges struct {
	lines []string
	// fields are the fields that lines have.
	fields map[string]bool
}

// mostFields is how many fields of an object are listed.
const mostFields = 4

// add compares the state before and after an upgrade while the controller is idle, at one Settle.
func (c *upgradeChanges) add(p *plan, o *judge.Outcome, at inject.Deviation) {
	if c.fields == nil {
		c.fields = map[string]bool{}
	}
	step := slices.IndexFunc(p.reference.Points, func(m inject.Injectable) bool { return m.Point == at.Point })
	if step < 0 {
		return
	}
	step = p.reference.Points[step].Step
	before, after := p.reference.At(step), o.At(step)
	was, is := p.reader().Flatten(before), p.reader().Flatten(after)
	for _, d := range p.reader().Differences(before, after, p.reference.Masked) {
		switch {
		case c.fields[d.Name]:
		case d.Cause == CauseMissing:
			c.fields[d.Name] = true
			c.lines = append(c.lines, d.Name+": it is deleted")
		case d.Cause == CauseUnexpected:
			c.fields[d.Name] = true
			c.lines = append(c.lines, d.Name+": it is created")
		default:
			c.changed(p, d.Name, was[d.Name], is[d.Name])
		}
	}
}

// changed describes the fields of an object that an upgrade changes, unless an earlier line does.
func (c *upgradeChanges) changed(p *plan, name string, was, is *state.FlatObject) {
	var texts []string
	more, pods := 0, false
	for _, path := range state.Different(was.Read(), is.Read()) {
		before, existed := was.Read()[path]
		after, exists := is.Read()[path]
		key := name + ":" + path
		if c.fields[key] || p.reference.Masked[state.MaskKey(name, before, after)] {
			continue
		}
		c.fields[key] = true
		pods = pods || hasPods(name) && state.Within(path, "spec.template")
		text := fmt.Sprintf("%s from %s to %s", path, before.Value, after.Value)
		switch {
		case !existed:
			text = path + " is added" + valueOf(after)
		case !exists:
			text = path + " is removed" + valueOf(before)
		}
		if len(texts) == mostFields {
			more++
			continue
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return
	}
	line := name + ": " + strings.Join(texts, ", ")
	if more > 0 {
		line += fmt.Sprintf(", and %s", phrase.Plural(more, "other field"))
	}
	if pods {
		line += ": it restarts the pods"
	}
	c.lines = append(c.lines, line)
}

// valueOf formats a value that is added or removed. Finalizers have none.
func valueOf(f state.Field) string {
	if f.Value == state.FlagValue {
		return ""
	}
	return " (" + f.Value + ")"
}

// hasPods reports whether a change of the pod template of an object restarts its pods.
func hasPods(name string) bool {
	kind, _, _ := strings.Cut(name, " ")
	return kind == "Deployment" || kind == "StatefulSet" || kind == "DaemonSet"
}
