// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/judge"
	"trueup.dev/converge/internal/search"
	"trueup.dev/converge/internal/state"
	"trueup.dev/internal/engine/calledby"
)

// Upgrade proves that a new version of a controller takes over from an old one at any point, and the old one from the
// new one.
//
// The first process runs the old version, and each later process the new one. So each fault that ends a process is an
// upgrade: [FaultRestart] is one at rest, crashes are in the middle of a reconcile, and [FaultHandOver] is a change of
// the leader while both are alive: a write of the old version takes effect after the first reconcile of the new one.
// All of them are tried at all points of the run of the old version, then further faults after and shortly before an
// upgrade. Then a third process runs the old version again: a rollback, also in the middle of an upgrade.
//
// The old scenario has what differs in the old version: New, Setup, Programs, Owns, Watches, Filters, Indexes, CRDs,
// Webhooks, Uncached and Desired. All else comes from the current scenario. If there are several programs, all are
// upgraded at once. The definitions in CRDs are replaced at the same time, so that the storage version can change.
//
// There are two runs without faults, one of each version alone. The state at a Settle is compared with the state of the
// version that runs then, and fields that differ between runs of either version are not compared. The controller may
// create and delete each object as often as the version does that does so more often. An object that only one version
// creates, the other one may delete.
//
// An object that an upgrade deletes and creates again is a failure, unless an [Exception] of [OracleDuplicates]
// declares it. [Scenario.NoRollback] declares that going back is not supported. The log has what an upgrade changes
// although users change nothing, especially pod templates, which restart pods.
//
// Flags, saved schedules and pages are the same as for [Run].
func Upgrade(t *testing.T, old, current Scenario) {
	t.Helper()
	u, err := newUpgrade(old, current, *seedFlag)
	if err != nil {
		t.Fatal(err)
	}
	if *replayFlag != "" {
		u.replay(t, *replayFlag)
		return
	}
	for _, p := range u.directions {
		if failure := p.replaySaved(t); failure != nil {
			p.fail(t, failure)
			return
		}
	}
	report := u.search(t, DefaultOptions())
	if report.Failure != nil {
		u.directions[0].fail(t, report.Failure)
		return
	}
	t.Log(report.Certificate)
}

// CheckUpgrade is [Upgrade] that returns the report instead of failing the test.
func CheckUpgrade(t *testing.T, old, current Scenario, o Options) (*UpgradeReport, error) {
	u, err := newUpgrade(old, current, o.Seed)
	if err != nil {
		return nil, err
	}
	return u.search(t, o), nil
}

// upgrades are the runs of an upgrade.
type upgrades struct {
	// old and current run one version alone.
	old, current *plan
	// directions are the upgrade and, if it is supported, the rollback.
	directions []*plan
}

// upgrade is a sequence of versions.
type upgrade struct {
	// name begins the encoded schedules.
	name string
	// versions are the plans whose programs the first process runs, the second one and so on. The last one is also that of
	// all later ones.
	versions []*plan
	// alone has each version once.
	alone []*plan
}

const (
	upgradeName  = "upgrade"
	rollbackName = "rollback"
)

func newUpgrade(old, current Scenario, seed uint64) (*upgrades, error) {
	u := &upgrades{}
	var err error
	if u.current, err = newPlan(current); err != nil {
		return nil, fmt.Errorf("new version: %w", err)
	}
	if u.old, err = newPlan(oldVersion(old, current)); err != nil {
		return nil, fmt.Errorf("old version: %w", err)
	}
	if err := u.check(old, current); err != nil {
		return nil, err
	}
	u.shareDefinitions()
	u.old.version, u.current.version = "old version", "new version"
	u.add(upgradeName, seed, u.old, u.current)
	if current.NoRollback == "" {
		u.add(rollbackName, seed, u.old, u.current, u.old)
	}
	return u, nil
}

// oldVersion returns the current scenario with the program of the old one.
func oldVersion(old, current Scenario) Scenario {
	s := current
	s.New, s.Setup, s.Owns, s.Watches, s.Filters = old.New, old.Setup, old.Owns, old.Watches, old.Filters
	s.Indexes, s.CRDs, s.Webhooks, s.Uncached = old.Indexes, old.CRDs, old.Webhooks, old.Uncached
	s.Desired, s.Programs = old.Desired, old.Programs
	if old.For != nil {
		s.For = old.For
	}
	return s
}

// check reports what cannot be meant: all but the program comes from the current scenario.
func (u *upgrades) check(old, current Scenario) error {
	var problems []error
	if one, other := u.old.primary.GroupKind(), u.current.primary.GroupKind(); one != other {
		problems = append(problems, fmt.Errorf("field For: the old version reconciles %s, and the new one %s", one, other))
	}
	if one, other := u.old.programNames(), u.current.programNames(); !slices.Equal(one, other) {
		problems = append(problems, fmt.Errorf("field Programs: the old version has %q, and the new one %q", one, other))
	}
	if n, m := len(flat(old.Steps)), len(flat(current.Steps)); n != 0 && n != m {
		problems = append(problems, fmt.Errorf("field Steps: the old version has %d, and the new one %d", n, m))
	}
	for _, f := range []struct {
		name     string
		old, new int
	}{
		{"Given", len(old.Given), len(current.Given)},
		{"World", len(old.World), len(current.World)},
		{"Masks", len(old.Masks), len(current.Masks)},
		{"Off", len(old.Off), len(current.Off)},
		{"Without", len(old.Without), len(current.Without)},
		{"Except", len(old.Except), len(current.Except)},
		{"With", len(old.With), len(current.With)},
	} {
		if f.old > f.new {
			problems = append(problems, fmt.Errorf(
				"field %s: the old version has %d, and the new one %d; only those of the new one are used", f.name, f.old, f.new,
			))
		}
	}
	if len(problems) > 0 {
		return fmt.Errorf("upgrade: %w", errors.Join(problems...))
	}
	return nil
}

// shareDefinitions lets both versions share their custom kinds if they are equal. Otherwise kinds with several versions
// are compared in the version of the new program if the old one serves it.
func (u *upgrades) shareDefinitions() {
	if reflect.DeepEqual(u.old.CRDs, u.current.CRDs) {
		u.old.registry, u.old.applier = u.current.registry, u.current.applier
	}
	u.old.shown = maps.Clone(u.old.shown)
	for kind, version := range u.current.shown {
		if _, served := u.old.registry.For(kind.WithVersion(version)); served && u.old.shown[kind] != "" {
			u.old.shown[kind] = version
		}
	}
}

func (p *plan) programNames() []string {
	var names []string
	for _, program := range p.programs {
		names = append(names, program.Name)
	}
	return names
}

func (u *upgrades) add(name string, seed uint64, versions ...*plan) {
	p := *u.current
	p.seed, p.version = seed, ""
	p.upgrade = &upgrade{name: name, versions: versions, alone: []*plan{u.old, u.current}}
	u.directions = append(u.directions, &p)
}

// replay replays a schedule in its direction.
func (u *upgrades) replay(t *testing.T, encoded string) {
	t.Helper()
	for _, p := range u.directions {
		if p.isOwn(encoded) {
			p.replay(t, encoded)
			return
		}
	}
	t.Fatalf("schedule %q: must begin with %q", encoded, upgradeName+":")
}

// sequence returns the plans whose programs the first process runs, the second one and so on.
func (p *plan) sequence() []*plan {
	if p.upgrade == nil {
		return []*plan{p}
	}
	return p.upgrade.versions
}

// alone returns the plans that have the runs without faults.
func (p *plan) alone() []*plan {
	if p.upgrade == nil {
		return []*plan{p}
	}
	return p.upgrade.alone
}

// directionOf returns the direction of an encoded schedule, or "".
func directionOf(encoded string) string {
	for _, name := range []string{upgradeName, rollbackName} {
		if strings.HasPrefix(encoded, name+":") {
			return name
		}
	}
	return ""
}

func (p *plan) direction() string {
	if p.upgrade == nil {
		return ""
	}
	return p.upgrade.name
}

// isOwn reports whether an encoded schedule has the direction of the plan.
func (p *plan) isOwn(encoded string) bool { return directionOf(encoded) == p.direction() }

// encode formats a schedule with its direction.
func (p *plan) encode(s inject.Schedule) string {
	if p.upgrade == nil {
		return s.Encode(p.seed)
	}
	return p.upgrade.name + ":" + s.Encode(p.seed)
}

// decode is the opposite of encode.
func (p *plan) decode(encoded string) (inject.Schedule, uint64, error) {
	if p.upgrade != nil {
		encoded = strings.TrimPrefix(encoded, p.upgrade.name+":")
	}
	return inject.Decode(encoded)
}

// referVersions executes the runs without faults of each version. What differs between runs of one version is not
// compared.
func (p *plan) referVersions(t *testing.T) (judge.Outcome, bool) {
	p.reference, p.failedVersion = nil, nil
	p.random = state.RandomNames{}
	masked, unstable := map[string]bool{}, map[string]string{}
	for _, version := range p.upgrade.alone {
		version.seed = p.seed
		if o, ok := version.refer(t); !ok {
			p.failedVersion = version
			return o, false
		}
		maps.Copy(p.random, version.random)
		maps.Copy(masked, version.reference.Masked)
		version.reference.Masked, version.reference.Unstable = masked, unstable
	}
	p.reference = p.upgrade.versions[0].reference
	return p.reference.Outcome, true
}

// explainUpgrade fills in the description of a failure of an upgrade. The hints of Run are about one version: they
// apply if that fails alone, too.
func (p *plan) explainUpgrade(t *testing.T, f *Failure) {
	for _, version := range p.upgrade.alone {
		if version.reference == nil {
			continue
		}
		o := version.try(t, f.schedule, nil)
		v, failed := o.First()
		if !failed || !v.IsLike(finding.Violation(f.Violation)) {
			continue
		}
		f.Violation.Details = append(
			[]string{"the " + version.version + " alone fails with the same faults: Run shows it"}, f.Violation.Details...,
		)
		f.explainMistake()
		return
	}
	f.Hint = explain.UpgradeHints[f.Violation.Cause]
}

// LeftOut lists what both versions leave out, with the reasons.
func (u *upgrades) leftOut() []string {
	var lines []string
	for _, p := range []*plan{u.old, u.current} {
		for _, line := range p.leftOut() {
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	if reason := u.current.NoRollback; reason != "" {
		lines = append(lines, "without rollback: "+reason)
	}
	return lines
}

// search searches for a failure in both directions, shrinks it, and describes it.
func (u *upgrades) search(t *testing.T, o Options) *UpgradeReport {
	calledby.Controller() // outside of any bubble
	report := &UpgradeReport{}
	found, p := u.explore(t, o, &report.Certificate)
	if found == nil {
		return report
	}
	report.Failure = p.shrunk(t, found)
	if p.upgrade == nil { // one version fails without faults
		report.Failure.Replay = u.directions[0].encode(inject.Schedule{})
		report.Failure.Violation.Message += " (the " + p.version + " alone)"
	}
	return report
}

// explore searches in both directions, and returns the first failure with its plan. The order depends on nothing but
// the scenarios and the options.
func (u *upgrades) explore(
	t *testing.T, o Options, cert *UpgradeCertificate,
) (found *search.Failure[inject.Schedule], of *plan) {
	defer search.Tune(t)()
	begin := time.Now()
	defer func() {
		cert.Elapsed, cert.LeftOut, cert.failed = time.Since(begin), u.leftOut(), found != nil
	}()
	var previous *search.Upgrades
	for _, p := range u.directions {
		x := &search.Upgrades{Schedules: p.newSearch(t, o)}
		if previous == nil {
			if reference, ok := p.refer(t); !ok {
				return x.Failed(inject.Schedule{}, &reference), p.failedVersion
			}
		}
		p.reference, p.random = u.old.reference, u.directions[0].random
		x.Reference, x.Length = p.reference.Points, p.length(&p.reference.Outcome)
		x.Limits = x.For(max(u.old.length(&u.old.reference.Outcome), u.current.length(&u.current.reference.Outcome)))
		changes := explain.Changes{Reader: p.reader(), Masked: p.reference.Masked}
		x.AtRest = func(o *judge.Outcome, step int) { changes.Add(p.reference.At(step), o.At(step)) }
		found = x.Search(previous)
		tried := Certificate{}
		tried.count(x.Schedules, false)
		if _, off := u.current.Off[OracleAdvice]; off {
			tried.Advice = nil
		}
		if previous == nil {
			cert.Upgrade, cert.Changes = tried, changes.Lines
		} else {
			cert.Rollback = &tried
		}
		if found != nil {
			return found, p
		}
		previous = x
	}
	return nil, nil
}
