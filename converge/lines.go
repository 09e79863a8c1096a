// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"strings"
)

// maxLines limits the length of a timeline.
const maxLines = 12

// lastLines is how many lines before the violation are shown if it is not about what was written.
const lastLines = 5

// lines returns the indexes of the entries that are shown: the violation and the last writes before it, then the
// faults, then what led there, as many as fit. A gap takes a line, too.
func (f *Failure) lines() []int {
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
func (f *Failure) byImportance() [][]int {
	decisive := f.decisive()
	who := map[string]bool{}
	for _, i := range decisive {
		who[f.entries[i].who] = true
	}
	var last int
	if len(decisive) > 0 {
		last = slices.Max(decisive)
	}
	faulty := map[string]bool{}
	groups := [][]int{
		f.where(func(_ int, e entry) bool { return e.mark == harmMark }),
		decisive,
		f.where(func(i int, e entry) bool {
			hit := f.isHit(i)
			if hit || e.mark == faultMark {
				faulty[e.who] = true
			}
			return hit || e.mark == faultMark
		}),
	}
	return append(
		groups,
		f.lastStep(last),
		f.where(func(i int, e entry) bool { return i < last && who[e.who] && e.mark == staleMark }),
		f.where(func(_ int, e entry) bool { return e.turn == ending && (faulty[e.who] || who[e.who]) }),
		f.where(func(_ int, e entry) bool { return e.weight >= write && f.isAbout(e) }),
		f.where(func(i int, e entry) bool { return i < last && who[e.who] && e.isRead() && f.isAbout(e) }),
		f.where(func(_ int, e entry) bool { return e.weight == crucial }),
		f.where(func(_ int, e entry) bool { return e.turn == starting }),
		f.where(func(_ int, e entry) bool { return e.weight == write }),
		f.where(func(i int, e entry) bool { return i < last && who[e.who] }),
		f.where(func(_ int, e entry) bool { return e.weight == notable }),
		f.where(func(int, entry) bool { return true }),
	)
}

// decisive returns the indexes of the last writes of the process and of others to the object of the violation or, if
// there are none, of the last lines before the violation.
func (f *Failure) decisive() []int {
	end := slices.IndexFunc(f.entries, func(e entry) bool { return e.mark == harmMark })
	if end < 0 {
		end = len(f.entries)
	}
	var found []int
	if f.Violation.Oracle != OracleQuiescence && f.Violation.Oracle != OracleErrors {
		byProcess, byOthers := -1, -1
		for i, e := range f.entries[:end] {
			switch {
			case !f.isAbout(e) || e.weight < notable || e.turn != 0 && e.act == "":
			case e.act != "" && (e.effect || e.weight >= write):
				byProcess = i
			case e.act == "" && e.to == theServer:
				byOthers = i
			}
		}
		for _, i := range []int{byProcess, byOthers} {
			if i >= 0 {
				found = append(found, i)
			}
		}
	}
	if len(found) > 0 {
		return found
	}
	for i := end - 1; i >= 0 && len(found) < lastLines; i-- {
		if e := f.entries[i]; e.who != "watch" && e.who != "checks" && e.who != "user" {
			found = append(found, i)
		}
	}
	return found
}

// lastStep returns the index of the last step of the users before an entry that is not a wait.
func (f *Failure) lastStep(before int) []int {
	for i := min(before, len(f.entries)-1); i >= 0; i-- {
		if e := f.entries[i]; e.who == "user" && e.to == theServer {
			return []int{i}
		}
	}
	return nil
}

// where returns the indexes of the entries that match, the last one first.
func (f *Failure) where(match func(i int, e entry) bool) []int {
	var found []int
	for i, e := range slices.Backward(f.entries) {
		if match(i, e) {
			found = append(found, i)
		}
	}
	return found
}

// isHit reports whether a fault is injected at an entry.
func (f *Failure) isHit(i int) bool {
	return slices.ContainsFunc(f.schedule, func(d deviation) bool { return f.lineOf(d) == i+1 })
}

// isRead reports whether an entry is a read.
func (e entry) isRead() bool {
	return strings.HasSuffix(e.act, "get") || strings.HasSuffix(e.act, "list")
}

// isAbout reports whether an entry concerns the object of the violation.
func (f *Failure) isAbout(e entry) bool {
	about := f.about()
	if about == "" {
		return false
	}
	if e.act != "" {
		return e.object == about || strings.HasSuffix(e.object, " "+about) || e.isRead() && e.object == "" &&
			strings.HasPrefix(about, e.kind.Kind+" ")
	}
	if prefix, generated := strings.CutSuffix(about, "*"); generated {
		return strings.Contains(e.what, prefix)
	}
	return strings.HasSuffix(e.what, " "+about) || strings.Contains(e.what, " "+about+" ") || e.what == about
}

// about returns the name of the object of the violation, as entries have it.
func (f *Failure) about() string {
	about := f.Violation.About
	for _, event := range eventNames {
		about = strings.TrimPrefix(about, event+" ")
	}
	about, _, _ = strings.Cut(about, " (")   // one of several objects with generated names
	about, _, _ = strings.Cut(about, " of ") // the group of a kind
	return about
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
