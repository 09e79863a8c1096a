// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"trueup.dev/converge"
)

// asCode is the line of a section of the guide that names an entry, its file, and the oracle that finds the bug.
var asCode = regexp.MustCompile(`- \*\*As code:\*\* \[([^\]]+)\]\(([^)]+)\)(?:, found by \[([^\]]+)\]\([^)]+\))?\.`)

// guideEntry is an entry that the guide shows for a fault or an oracle.
type guideEntry struct {
	Entry

	oracle converge.Oracle
}

// guideEntries returns the entries that a page names, by the titles of the sections. It skips sections that name a test
// of converge, and returns all titles.
func guideEntries(t *testing.T, page, heading string) (entries map[string]guideEntry, titles []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/converge/" + page)
	if err != nil {
		t.Fatal(err)
	}
	entries = map[string]guideEntry{}
	for _, section := range strings.Split(string(text), "\n"+heading+" ")[1:] {
		title, content, _ := strings.Cut(section, "\n")
		match := asCode.FindStringSubmatch(strings.Join(strings.Fields(content), " "))
		if match == nil {
			continue // Package docs checks that each fault and each oracle has such a line.
		}
		titles = append(titles, title)
		file, ours := strings.CutPrefix(match[2], "../../lab/corpus/")
		if !ours {
			continue
		}
		i := slices.IndexFunc(All(), func(e Entry) bool { return e.Name == match[1] })
		if i < 0 {
			t.Errorf("%s: %s: no entry %q", page, title, match[1])
			continue
		}
		code, err := os.ReadFile(file)
		if err != nil || !regexp.MustCompile(`Name:\s+"`+match[1]+`"`).Match(code) {
			t.Errorf("%s: %s: %s is not in %s (%v)", page, title, match[1], file, err)
		}
		entries[title] = guideEntry{All()[i], converge.Oracle(match[3])}
	}
	return entries, titles
}

// TestFaultsOfGuide checks that each fault alone finds the bug that the guide shows for it, and that the twin passes.
func TestFaultsOfGuide(t *testing.T) {
	entries, faults := guideEntries(t, "faults.md", "###")
	if len(entries) < 25 {
		t.Errorf("the guide shows only %d entries", len(entries))
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e, fault := entries[name], converge.Fault(name)
		t.Run(name, func(t *testing.T) {
			buggy, correct := withOnly(e.Buggy(), fault), withOnly(e.Correct(), fault)
			buggy.Without = map[converge.Fault]string{}
			for _, other := range faults {
				if other != name {
					buggy.Without[converge.Fault(other)] = "the section is about another fault"
				}
			}
			report, err := converge.Check(t, buggy, converge.Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			switch f := report.Failure; {
			case f == nil:
				t.Errorf("%s is not found", e.Name)
			case f.Violation.Oracle != e.oracle || !strings.Contains(f.Replay, ":"+name+"@"):
				t.Errorf("%s: found by %s, want %s:\n%s", e.Name, f.Violation.Oracle, e.oracle, f)
			}
			if report, err = converge.Check(t, correct, converge.Options{Seed: 1}); err != nil || report.Failure != nil {
				t.Errorf("the twin of %s fails: %v\n%s", e.Name, err, report.Failure)
			}
		})
	}
}

// withOnly enables one fault that may be disabled by default, and no other such fault.
func withOnly(s converge.Scenario, fault converge.Fault) converge.Scenario {
	s.With = []converge.Fault{fault}
	return s
}

// TestOraclesOfGuide checks that each oracle finds the bug that the guide shows for it. TestCorpus runs the twins.
func TestOraclesOfGuide(t *testing.T) {
	entries, _ := guideEntries(t, "oracles.md", "##")
	if len(entries) < 8 {
		t.Errorf("the guide shows only %d entries", len(entries))
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		t.Run(name, func(t *testing.T) {
			report, err := converge.Check(t, e.Buggy(), converge.Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			if f := report.Failure; f == nil || f.Violation.Oracle != converge.Oracle(name) {
				t.Errorf("%s does not find %s:\n%v", name, e.Name, f)
			}
		})
	}
}
