// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// MaxLines limits the length of a timeline.
const MaxLines = 12

// lastLines is how many lines before the violation are shown if it is not about what was written.
const lastLines = 5

// Lines returns the indexes of the entries that are shown: the violation, the last writes before it and what the hint
// is based on, then the faults, then what led there, as many as fit. A gap takes a line, too.
func (f *Failure) Lines() []int {
	var shown []int
	for _, group := range f.byImportance() {
		for _, i := range group {
			more := append(slices.Clone(shown), i)
			slices.Sort(more)
			if more = slices.Compact(more); len(more)+gaps(more) <= MaxLines {
				shown = more
			}
		}
	}
	return shown
}

// byImportance lists the indexes of the entries, in groups. The last entries of a group come first: they are closer to
// the violation.
func (f *Failure) byImportance() [][]int {
	decisive := f.Decisive()
	who := map[string]bool{} // who made the decisive requests, or received a fault
	for _, i := range slices.Concat(decisive, f.Proof) {
		who[f.Entries[i].Who] = f.Entries[i].Mark != HarmMark
	}
	faults := f.where(func(i int, e Entry) bool { return f.isHit(i) || e.Mark == FaultMark })
	lastFault := -1
	for _, i := range faults {
		lastFault = max(lastFault, i)
		who[f.Entries[i].Who] = true
	}
	return [][]int{
		f.where(func(_ int, e Entry) bool { return e.Mark == HarmMark }),
		decisive,
		f.Proof,
		faults,
		f.lastStep(lastFault),
		f.where(func(_ int, e Entry) bool { return e.Program != "" }),
		f.where(func(_ int, e Entry) bool { return who[e.Who] && e.isStaleRead() }),
		f.where(func(_ int, e Entry) bool { return who[e.Who] && e.Turn == Ending }),
		f.where(func(i int, e Entry) bool { return i > lastFault && e.Turn == Starting }),
		f.where(func(_ int, e Entry) bool { return e.Act != "" && e.Weight >= Write && f.isAbout(e) }),
		f.where(func(_ int, e Entry) bool { return who[e.Who] && e.isRead() && f.isAbout(e) }),
		f.where(func(_ int, e Entry) bool { return e.Weight == Crucial }),
		f.where(func(i int, e Entry) bool { return i > lastFault && e.isWrite() }),
		f.where(func(i int, e Entry) bool { return i > lastFault && e.Turn == Ending }),
		f.where(func(_ int, e Entry) bool { return who[e.Who] }),
		f.where(func(_ int, e Entry) bool { return e.Weight >= Notable }),
		f.where(func(int, Entry) bool { return true }),
	}
}

// Decisive returns the indexes of the last writes of the process and of others to the object of the violation. If there
// are none, it returns the lines of the last writes or, if reconciles do not end as they should, of the last lines.
func (f *Failure) Decisive() []int {
	end := slices.IndexFunc(f.Entries, func(e Entry) bool { return e.Mark == HarmMark })
	if end < 0 {
		end = len(f.Entries)
	}
	last := func(match func(Entry) bool) []int {
		for i, e := range slices.Backward(f.Entries[:end]) {
			if match(e) {
				return []int{i}
			}
		}
		return nil
	}
	var found []int
	switch f.Violation.Oracle {
	case finding.OracleQuiescence, finding.OracleErrors:
		for i := end - 1; i >= 0 && len(found) < lastLines; i-- {
			if e := f.Entries[i]; e.From == TheProcess && e.Turn != Beginning {
				found = append(found, i)
			}
		}
		return found
	case finding.OracleDuplicates: // what the garbage collector deletes in the end does not count
		found = last(func(e Entry) bool { return f.writes(e) && (e.isCreation() || e.isDeletion()) })
	default:
		found = append(
			last(func(e Entry) bool { return f.isAbout(e) && (f.writes(e) || e.isWrite() && e.Failed) }),
			last(func(e Entry) bool { return f.isAbout(e) && e.Act == "" && e.To == TheServer })...,
		)
	}
	if len(found) == 0 {
		found = last(func(e Entry) bool { return e.isWrite() && e.Effect })
	}
	return found
}

// lastStep returns the index of the last step of the users before an entry that is not a wait, or of the last step of
// all if there is no entry.
func (f *Failure) lastStep(before int) []int {
	if before < 0 {
		before = len(f.Entries) - 1
	}
	for i := before; i >= 0; i-- {
		if e := f.Entries[i]; e.Who == phrase.User && e.To == TheServer {
			return []int{i}
		}
	}
	return nil
}

// where returns the indexes of the entries that match, the last one first.
func (f *Failure) where(match func(i int, e Entry) bool) []int {
	var found []int
	for i, e := range slices.Backward(f.Entries) {
		if match(i, e) {
			found = append(found, i)
		}
	}
	return found
}

// isHit reports whether a fault is injected at an entry.
func (f *Failure) isHit(i int) bool {
	return slices.ContainsFunc(f.Schedule, func(d inject.Deviation) bool { return f.lineOf(d) == i+1 })
}

// isRead reports whether an entry is a read.
func (e Entry) isRead() bool {
	return strings.HasSuffix(e.Act, "get") || strings.HasSuffix(e.Act, "list")
}

// isAbout reports whether an entry concerns the object of the violation.
func (f *Failure) isAbout(e Entry) bool {
	about := f.about()
	if about == "" {
		return false
	}
	if e.Act != "" {
		return e.Object == about || strings.HasSuffix(e.Object, " "+about) ||
			strings.HasPrefix(e.Object, "cloud ") && strings.HasPrefix(about, e.Object) ||
			e.isRead() && e.Object == "" && strings.HasPrefix(about, e.Kind.Kind+" ")
	}
	if prefix, generated := strings.CutSuffix(about, "*"); generated {
		return strings.Contains(e.What, prefix)
	}
	return strings.HasSuffix(e.What, " "+about) || strings.Contains(e.What, " "+about+" ") || e.What == about
}

func gaps(lines []int) int {
	n := 0
	for i := 1; i < len(lines); i++ {
		if lines[i] > lines[i-1]+1 {
			n++
		}
	}
	return n
}

// about returns the name of the object of the violation, as entries have it.
func (f *Failure) about() string { return f.Violation.Object() }
