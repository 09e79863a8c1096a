// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/examples/website/internal/render"
)

func TestSite(t *testing.T) {
	tests := map[string]struct {
		theme    map[string]string
		language string
		pages    []render.Page
		want     map[string]string
	}{
		"a file per page and the style": {
			theme: map[string]string{
				"layout.html": "{{.Site}}|{{.Title}}|{{range .Paragraphs}}<p>{{.}}</p>{{end}}|{{range " +
					".Navigation}}{{.Href}}={{.Title}};{{end}}",
				"style.css": "body {}",
			},
			pages: []render.Page{
				{Name: "index", Title: "Welcome", Body: "One.\n\n\n\nTwo,\nstill two.\n"},
				{Name: "about", Title: "About"},
			},
			want: map[string]string{
				"index.html": "www.example.com|Welcome|<p>One.</p><p>Two,\nstill two.</p>|index.html=Welcome;about.html=About;",
				"about.html": "www.example.com|About||index.html=Welcome;about.html=About;",
				"style.css":  "body {}",
			},
		},
		"text is escaped": {
			theme: map[string]string{"layout.html": "<h1>{{.Title}}</h1>", "style.css": ""},
			pages: []render.Page{{Name: "index", Title: "<script>alert(1)</script>"}},
			want:  map[string]string{"index.html": "<h1>&lt;script&gt;alert(1)&lt;/script&gt;</h1>", "style.css": ""},
		},
		"the layout has the language": {
			theme:    map[string]string{"layout.html": "{{.Language}}", "style.css": ""},
			language: "de",
			pages:    []render.Page{{Name: "index", Title: "Willkommen"}},
			want:     map[string]string{"index.html": "de", "style.css": ""},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			theme, err := render.ParseTheme(tc.theme)
			if err != nil {
				t.Fatal(err)
			}
			got, err := theme.Site("www.example.com", tc.language, tc.pages)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSite_builtInTheme(t *testing.T) {
	theme, err := render.ParseTheme(nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := theme.Site("www.example.com", "de", []render.Page{{Name: "index", Title: "Willkommen", Body: "Hallo."}})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`<html lang="de">`, "<title>Willkommen - www.example.com</title>", "<p>Hallo.</p>", `href="index.html"`,
	} {
		if !strings.Contains(files["index.html"], part) {
			t.Errorf("index.html has no %s:\n%s", part, files["index.html"])
		}
	}
	if files["style.css"] == "" {
		t.Error("style.css is empty")
	}
}

func TestSite_brokenThemes(t *testing.T) {
	tests := map[string]struct {
		layout string
		want   string
	}{
		"does not parse": {layout: "{{.Title", want: "the layout is broken: template: layout.html:1: unclosed action"},
		"uses an unknown field": {
			layout: "{{.Price}}", want: "page index: template: layout.html:1:2: executing \"layout.html\" at <.Price>",
		},
		"writes without bound": {
			layout: `{{define "x"}}12345678{{template "x"}}{{end}}{{template "x"}}`, want: "page index: ",
		},
		"writes too much": {
			layout: strings.Repeat("x", render.MaxFile+1), want: "page index: the layout writes more than 256 KiB",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			theme, err := render.ParseTheme(map[string]string{"layout.html": tc.layout})
			if err == nil {
				_, err = theme.Site("www.example.com", "", []render.Page{{Name: "index", Title: "Welcome"}})
			}
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("error = %v, want %s…", err, tc.want)
			}
		})
	}
}

func TestTranslate(t *testing.T) {
	pages := []render.Page{{Name: "index", Title: "Welcome"}, {Name: "about", Title: "About"}}
	got := render.Translate(pages, []render.Page{{Name: "about", Title: "Über uns"}})
	want := []render.Page{{Name: "index", Title: "Welcome"}, {Name: "about", Title: "Über uns"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if pages[1].Title != "About" {
		t.Error("the original pages were changed")
	}
}

func TestHash(t *testing.T) {
	sets := []map[string]map[string]string{
		nil,
		{"": {"index.html": "a"}},
		{"": {"index.html": "b"}},
		{"de": {"index.html": "a"}},
		{"": {"index.html": "a"}, "de": {"index.html": "a"}},
		{"": {"index.htm": "la"}},
	}
	seen := map[string]int{}
	for i, files := range sets {
		hash := render.Hash(files)
		if hash != render.Hash(files) {
			t.Errorf("set %d: the hash is not stable", i)
		}
		if other, ok := seen[hash]; ok {
			t.Errorf("sets %d and %d have the same hash", i, other)
		}
		seen[hash] = i
	}
}

func ExampleTheme_Site() {
	theme, err := render.ParseTheme(map[string]string{"layout.html": "<h1>{{.Title}}</h1>"})
	if err != nil {
		panic(err)
	}
	files, err := theme.Site("www.example.com", "", []render.Page{{Name: "index", Title: "Fish & chips"}})
	fmt.Println(files["index.html"], err)
	// Output: <h1>Fish &amp; chips</h1> <nil>
}
