// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/explain"
	"trueup.dev/converge/internal/finding"
	"trueup.dev/converge/internal/inject"
)

// failureOf returns the failure of a scenario.
func failureOf(t *testing.T, s Scenario) *Failure {
	t.Helper()
	report := mustCheck(t, s, Options{Recoveries: 1000, Pairs: 1000, Seed: 1})
	if report.Failure == nil {
		t.Fatalf("no failure: %s", report.Certificate)
	}
	return report.Failure
}

// element is an element of a page, with its text.
type element struct {
	name    string
	classes []string
	attr    map[string]string
	text    string
}

func (e element) is(name, class string) bool {
	return e.name == name && (class == "" || slices.Contains(e.classes, class))
}

// parse reads a page as strictly as XML: each element must be closed, and each attribute quoted.
func parse(t *testing.T, page []byte) []element {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(page))
	var elements []element
	var open []int
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return elements
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attr: map[string]string{}}
			for _, a := range token.Attr {
				e.attr[a.Name.Local] = a.Value
			}
			e.classes = strings.Fields(e.attr["class"])
			open = append(open, len(elements))
			elements = append(elements, e)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			for _, i := range open {
				elements[i].text += string(token)
			}
		}
	}
}

func pageElements(t *testing.T, f *Failure) []element {
	t.Helper()
	page, err := f.HTML()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, page)
}

func find(elements []element, name, class string) []element {
	var found []element
	for _, e := range elements {
		if e.is(name, class) {
			found = append(found, e)
		}
	}
	return found
}

func texts(elements []element) []string {
	all := make([]string, 0, len(elements))
	for _, e := range elements {
		all = append(all, strings.Join(strings.Fields(e.text), " "))
	}
	return all
}

// TestFailure_HTML checks pages of real failures: each is well-formed, has no references, and contains the content of
// the text.
func TestFailure_HTML(t *testing.T) {
	for name, scenario := range map[string]Scenario{
		"called directly":           copierScenario(true),
		"called by a controller":    controllerScenario(true),
		"outside, without a fault":  keeping(),
		"oracle that is turned off": without(copierScenario(true)),
	} {
		t.Run(name, func(t *testing.T) {
			f := failureOf(t, scenario)
			page, err := f.HTML()
			if err != nil {
				t.Fatal(err)
			}
			elements := parse(t, page)
			for _, e := range elements {
				for _, attr := range []string{"src", "href", "srcset", "data", "action"} {
					if to, ok := e.attr[attr]; ok && !strings.HasPrefix(to, "#") {
						t.Errorf("%s has %s %q, which is an external reference", e.name, attr, to)
					}
				}
			}
			if bytes.Contains(page, []byte("://")) || bytes.Contains(page, []byte("@import")) ||
				bytes.Contains(page, []byte("url(")) {
				t.Error("the page has an external reference")
			}
			said := strings.Join(texts(find(elements, "main", "")), "")
			want := append(
				[]string{
					t.Name(),
					string(f.Violation.Oracle),
					f.Violation.Message,
					f.Hint,
					f.command(),
				},
				f.Violation.Details...,
			)
			for _, want := range append(want, f.Faults...) {
				if !strings.Contains(said, want) {
					t.Errorf("the page does not say %q", want)
				}
			}
			if title := texts(find(elements, "title", "")); !cmp.Equal(title, []string{
				t.Name() + ": " + string(f.Violation.Oracle),
			}) {
				t.Errorf("title: %q", title)
			}
		})
	}
}

// without turns off an oracle that is not related to the failure.
func without(s Scenario) Scenario {
	s.Off = map[Oracle]string{OracleStatus: "there is no status"}
	return s
}

// duplicated is a failure with all marks: a ConfigMap is created again, because the response to its creation was lost,
// and the cache is stale.
func duplicated(t *testing.T) *Failure {
	t.Helper()
	p, _ := referred(t, copierScenario(true))
	added := slices.IndexFunc(p.reference.Points, func(m inject.Injectable) bool {
		return m.Act == "event added" && m.Kind == "ConfigMap"
	})
	created := slices.IndexFunc(p.reference.Points, func(m inject.Injectable) bool { return m.Act == "create" })
	if added < 0 || created < 0 {
		t.Fatal("no config map is created")
	}
	f := &Failure{
		schedule: inject.Schedule{
			{Point: p.reference.Points[created].Point, Fault: FaultTimeoutApplied},
			{Point: p.reference.Points[added].Point, Fault: FaultLagLong},
		},
	}
	p.record(t, f)
	return f
}

// TestFailure_HTML_lines checks that the page first shows the lines of the text, and marks them with a symbol and a
// word, in the drawing and in the table.
func TestFailure_HTML_lines(t *testing.T) {
	f := duplicated(t)
	elements := pageElements(t, f)
	for _, in := range []struct{ what, name, class string }{{"drawing", "details", "row"}, {"table", "tr", ""}} {
		shown, hidden := 0, 0
		for _, e := range find(elements, in.name, in.class) {
			switch {
			case slices.Contains(e.classes, "more"):
				hidden++
			case !slices.Contains(e.classes, "gap") && !strings.HasPrefix(e.text, "#"):
				shown++
			}
		}
		if want := len(f.explained().Lines()); shown != want {
			t.Errorf("%s: %d lines at first, want %d", in.what, shown, want)
		}
		if want := len(f.log.Entries) + len(f.log.Arrivals) - len(f.explained().Lines()); hidden != want {
			t.Errorf("%s: %d lines more, want %d", in.what, hidden, want)
		}
	}
	if len(f.log.Arrivals) == 0 {
		t.Error("no events")
	}
	for _, mark := range []explain.Mark{explain.FaultMark, explain.StaleMark, explain.HarmMark} {
		want := 0
		for _, e := range f.log.Entries {
			if e.Mark == mark {
				want++
			}
		}
		rows := find(elements, "details", string(mark))
		if want == 0 || len(rows) != want {
			t.Errorf("%s: %d rows are marked, want %d", mark, len(rows), want)
		}
		for _, row := range rows {
			if !strings.Contains(row.text, string(mark)) {
				t.Errorf("%s: the row does not have the word: %s", mark, row.text)
			}
		}
		signs := 0
		for _, e := range elements {
			if e.is("use", "sign") && e.attr["href"] == "#"+string(mark) {
				signs++
			}
		}
		if signs != want {
			t.Errorf("%s: %d symbols in the drawing, want %d", mark, signs, want)
		}
	}
	var gaps []string
	for _, gap := range find(elements, "div", "gap") {
		gaps = append(gaps, strings.TrimSpace(gap.text))
	}
	for _, gap := range gaps {
		if !strings.Contains(f.Timeline(), gap) {
			t.Errorf("the text has no gap %q", gap)
		}
	}
}

// TestFailure_HTML_faults checks that each fault links to the line where it is injected.
func TestFailure_HTML_faults(t *testing.T) {
	p, _ := referred(t, copierScenario(false))
	s, _, err := inject.Decode(
		"v1:1:server-error@update:ConfigMap:default/a:2,timeout-lost@create:ConfigMap:default/a:1," +
			"server-error@update:ConfigMap:default/a:1,list-order@lists::/:1",
	)
	if err != nil {
		t.Fatal(err)
	}
	f := &Failure{schedule: s}
	p.record(t, f)
	var got []string
	for _, row := range f.explained().ShownFaults() {
		line := ""
		if row.Number > 0 {
			e := f.log.Entries[row.Number-1]
			line = fmt.Sprintf("%s: %s", e.What, e.Fault)
		}
		got = append(got, row.Fault+" at "+row.At+" -> "+line)
	}
	want := []string{
		"list-order at lists -> ",
		"timeout-lost at create ConfigMap default/a -> create ConfigMap default/a: timeout-lost",
		"server-error at update ConfigMap default/a -> update ConfigMap default/a: server-error",
		"server-error at update ConfigMap default/a #2 -> update ConfigMap default/a: server-error",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	for _, link := range find(pageElements(t, f), "a", "") {
		target := strings.TrimPrefix(link.attr["href"], "#")
		if !slices.ContainsFunc(pageElements(t, f), func(e element) bool { return e.attr["id"] == target }) {
			t.Errorf("%q has no target", link.text)
		}
	}
}

// TestFailure_HTML_meanwhile checks that a step of users during a reconcile is marked.
func TestFailure_HTML_meanwhile(t *testing.T) {
	p, _ := referred(t, copierScenario(false))
	f := &Failure{
		schedule: inject.Schedule{
			{
				Point: inject.Point{
					Site: inject.Site{Act: "create", Kind: "ConfigMap", Key: client.ObjectKeyFromObject(newSecret("a"))}, N: 1,
				},
				Fault: FaultMeanwhile,
			},
		},
	}
	p.record(t, f)
	rows := find(pageElements(t, f), "details", "fault")
	if len(rows) != 1 || !strings.Contains(rows[0].text, "change Secret default/a") {
		t.Errorf("marked rows: %q, want the change of the secret", texts(rows))
	}
}

// TestFailure_HTML_escapes checks that all content of a failure is escaped.
func TestFailure_HTML_escapes(t *testing.T) {
	const evil = `"'><script>alert(1)</script><!--`
	key := explain.CacheOf(newSecret(evil).GroupVersionKind())
	f := &Failure{
		Violation: Violation{
			Oracle: OracleEndState, About: evil, Message: evil, Details: []string{evil},
		}, Faults: []string{evil}, Replay: evil, Hint: evil, test: evil,
		tried: &Certificate{Schedules: 1}, leftOut: []string{evil},
		schedule: inject.Schedule{{Point: inject.Point{Site: inject.Site{Act: evil, Kind: evil}, N: 1}, Fault: Fault(evil)}},
		log: explain.Log{
			Entries: []explain.Entry{
				{
					Who: evil, What: evil, Cache: "cache@" + evil, Result: evil, Mark: explain.FaultMark, Weight: explain.Crucial,
					From: explain.TheProcess,
					To:   key, Fault: Fault(evil),
				},
				{Who: evil, What: evil, From: explain.Other(evil), To: explain.TheServer, Weight: explain.Crucial},
			},
			Arrivals: []explain.Arrival{
				{
					Entry: explain.Entry{
						Who: evil, What: evil, From: explain.TheServer, To: explain.Place{Role: explain.CacheRole, Name: evil},
						News: explain.Arriving,
					},
				},
			},
		},
	}
	elements := pageElements(t, f)
	if scripts := find(elements, "script", ""); len(scripts) != 1 || strings.Contains(scripts[0].text, "alert") {
		t.Errorf("unexpected scripts: %v", scripts)
	}
	for _, place := range []struct{ name, class string }{
		{"title", ""},
		{"h1", ""},
		{"p", "message"},
		{"pre", ""},
		{"p", "hint"},
		{"li", ""},
		{"code", ""},
		{"span", "who"},
		{"span", "what"},
		{"span", "cache"},
		{"span", "result"},
		{"dd", ""},
		{"td", ""},
		{"text", "version"},
		{"div", "names"},
	} {
		if !slices.ContainsFunc(find(elements, place.name, place.class), func(e element) bool {
			return strings.Contains(e.text, evil)
		}) {
			t.Errorf("%s %s does not have the escaped text", place.name, place.class)
		}
	}
}

// TestTriedText checks the description of the search.
func TestTriedText(t *testing.T) {
	for _, c := range []struct {
		reason string
		tried  *Certificate
		want   string
	}{
		{"a schedule that was saved", nil, "saved or given"},
		{"no fault is needed", &Certificate{Seed: 7}, "without any fault"},
		{
			"single faults found it", &Certificate{Seed: 7, Schedules: 31, Points: 9, Singles: 31},
			"31 runs in 0s, with seed 7.",
		},
		{
			"pairs found it", &Certificate{Schedules: 40, Singles: 31, Recoveries: 5, Pairs: 4},
			"After that 5 second faults, 4 pairs, and 0 random schedules.",
		},
	} {
		f := &Failure{tried: c.tried, Shrinks: 3}
		if got := f.triedText(); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q in it", c.reason, got, c.want)
		}
	}
}

// TestMeanings checks that each oracle has a meaning. TestFaultTable does for faults.
func TestMeanings(t *testing.T) {
	for _, oracle := range append([]Oracle{finding.OracleScenario}, allOracles...) {
		if finding.Meanings[oracle] == "" {
			t.Errorf("no meaning of oracle %s", oracle)
		}
	}
}
