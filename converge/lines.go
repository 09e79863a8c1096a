// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"strings"

	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
)

// maxLines limits the length of a timeline.
const maxLines = 12

// lastLines is how many lines before the violation are shown if it is not about what was written.
const lastLines = 5

// lines returns the indexes of the entries that are shown: the violation, the last writes before it and what the hint
// is based on, then the faults, then what led there, as many as fit. A gap takes a line, too.
func (f *explained) lines() []int {
	var shown []int
	for _, group := range f.byImportance() {
		for _, i := range group {
			more := append(slices.Clone(shown), i)
			slices.Sort(more)
			if more = slices.Compact(more); len(more)+gaps(more) <= maxLines {
				shown = more
			}
		}
	}
	return shown
}

// byImportance lists the indexes of the entries, in groups. The last entries of a group come first: they are closer to
// the violation.
func (f *explained) byImportance() [][]int {
	decisive := f.decisive()
	who := map[string]bool{} // who made the decisive requests, or received a fault
	for _, i := range slices.Concat(decisive, f.proof) {
		who[f.entries[i].who] = f.entries[i].mark != harmMark
	}
	faults := f.where(func(i int, e entry) bool { return f.isHit(i) || e.mark == faultMark })
	lastFault := -1
	for _, i := range faults {
		lastFault = max(lastFault, i)
		who[f.entries[i].who] = true
	}
	return [][]int{
		f.where(func(_ int, e entry) bool { return e.mark == harmMark }),
		decisive,
		f.proof,
		faults,
		f.lastStep(lastFault),
		f.where(func(_ int, e entry) bool { return e.program != "" }),
		f.where(func(_ int, e entry) bool { return who[e.who] && e.isStaleRead() }),
		f.where(func(_ int, e entry) bool { return who[e.who] && e.turn == ending }),
		f.where(func(i int, e entry) bool { return i > lastFault && e.turn == starting }),
		f.where(func(_ int, e entry) bool { return e.act != "" && e.weight >= write && f.isAbout(e) }),
		f.where(func(_ int, e entry) bool { return who[e.who] && e.isRead() && f.isAbout(e) }),
		f.where(func(_ int, e entry) bool { return e.weight == crucial }),
		f.where(func(i int, e entry) bool { return i > lastFault && e.isWrite() }),
		f.where(func(i int, e entry) bool { return i > lastFault && e.turn == ending }),
		f.where(func(_ int, e entry) bool { return who[e.who] }),
		f.where(func(_ int, e entry) bool { return e.weight >= notable }),
		f.where(func(int, entry) bool { return true }),
	}
}

// decisive returns the indexes of the last writes of the process and of others to the object of the violation. If there
// are none, it returns those of the last writes or, if reconciles do not end as they should, of the last lines.
func (f *explained) decisive() []int {
	end := slices.IndexFunc(f.entries, func(e entry) bool { return e.mark == harmMark })
	if end < 0 {
		end = len(f.entries)
	}
	last := func(match func(entry) bool) []int {
		for i, e := range slices.Backward(f.entries[:end]) {
			if match(e) {
				return []int{i}
			}
		}
		return nil
	}
	var found []int
	switch f.violation.Oracle {
	case finding.OracleQuiescence, finding.OracleErrors:
		for i := end - 1; i >= 0 && len(found) < lastLines; i-- {
			if e := f.entries[i]; e.from == theProcess && e.turn != beginning {
				found = append(found, i)
			}
		}
		return found
	case finding.OracleDuplicates: // what the garbage collector deletes in the end does not count
		found = last(func(e entry) bool { return f.writes(e) && (e.isCreation() || e.isDeletion()) })
	default:
		found = append(
			last(func(e entry) bool { return f.isAbout(e) && (f.writes(e) || e.isWrite() && e.failed) }),
			last(func(e entry) bool { return f.isAbout(e) && e.act == "" && e.to == theServer })...,
		)
	}
	if len(found) == 0 {
		found = last(func(e entry) bool { return e.isWrite() && e.effect })
	}
	return found
}

// lastStep returns the index of the last step of the users before an entry that is not a wait, or of the last step of
// all if there is no entry.
func (f *explained) lastStep(before int) []int {
	if before < 0 {
		before = len(f.entries) - 1
	}
	for i := before; i >= 0; i-- {
		if e := f.entries[i]; e.who == phrase.User && e.to == theServer {
			return []int{i}
		}
	}
	return nil
}

// where returns the indexes of the entries that match, the last one first.
func (f *explained) where(match func(i int, e entry) bool) []int {
	var found []int
	for i, e := range slices.Backward(f.entries) {
		if match(i, e) {
			found = append(found, i)
		}
	}
	return found
}

// isHit reports whether a fault is injected at an entry.
func (f *explained) isHit(i int) bool {
	return slices.ContainsFunc(f.schedule, func(d inject.Deviation) bool { return f.lineOf(d) == i+1 })
}

// isRead reports whether an entry is a read.
func (e entry) isRead() bool {
	return strings.HasSuffix(e.act, "get") || strings.HasSuffix(e.act, "list")
}

// isAbout reports whether an entry concerns the object of the violation.
func (f *explained) isAbout(e entry) bool {
	about := f.about()
	if about == "" {
		return false
	}
	if e.act != "" {
		return e.object == about || strings.HasSuffix(e.object, " "+about) ||
			strings.HasPrefix(e.object, "cloud ") && strings.HasPrefix(about, e.object) ||
			e.isRead() && e.object == "" && strings.HasPrefix(about, e.kind.Kind+" ")
	}
	if prefix, generated := strings.CutSuffix(about, "*"); generated {
		return strings.Contains(e.what, prefix)
	}
	return strings.HasSuffix(e.what, " "+about) || strings.Contains(e.what, " "+about+" ") || e.what == about
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
func (f *explained) about() string { return f.violation.Object() }
