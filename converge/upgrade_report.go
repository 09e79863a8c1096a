// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"trueup.dev/converge/internal/phrase"
	"trueup.dev/converge/internal/search"
)

// UpgradeReport is the result of [CheckUpgrade].
type UpgradeReport struct {
	// Failure is nil if no failure was found.
	Failure     *Failure
	Certificate UpgradeCertificate
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
