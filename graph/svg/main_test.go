// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDraw(t *testing.T) {
	var out strings.Builder
	dot := `digraph reconcilers { rankdir=LR; a [label="Website\nreconciles <all> & \"each\""]; a -> b [label=owns] }`
	if err := draw(t.Context(), strings.NewReader(dot), &out); err != nil {
		t.Fatal(err)
	}
	want := []string{"Website", `reconciles <all> & "each"`, "owns", "b"}
	texts := textsOf(t, out.String())
	for _, text := range want {
		if !texts[text] {
			t.Errorf("no text %q in:\n%s", text, out.String())
		}
	}
	if diff := cmp.Diff(len(want), len(texts)); diff != "" {
		t.Errorf("texts (-want +got):\n%s\n%v", diff, texts)
	}
}

// textsOf returns the contents of all elements "text" of an SVG file.
func textsOf(t *testing.T, svg string) map[string]bool {
	t.Helper()
	texts := map[string]bool{}
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, svg)
		}
		if element, ok := token.(xml.StartElement); ok && element.Name.Local == "text" {
			var text string
			if err := decoder.DecodeElement(&text, &element); err != nil {
				t.Fatal(err)
			}
			texts[text] = true
		}
	}
}

func TestDraw_Mistakes(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"empty":     {"\n", "standard input is empty; it must be the output of: trueup graph --format dot"},
		"text tree": {"Website\n└─ Sequence\n", "standard input is not a graph in the language of Graphviz: "},
		"cut off":   {"digraph reconcilers {\n  a -> ", "standard input is not a graph in the language of Graphviz: "},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			err := draw(t.Context(), strings.NewReader(tc.in), &out)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) || out.Len() > 0 {
				t.Errorf("error %v, want %q; output %q", err, tc.want, out.String())
			}
		})
	}
}
