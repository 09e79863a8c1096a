// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestScreen(t *testing.T) {
	script := func(s *Screen) {
		now := time.Unix(0, 0)
		s.now = func() time.Time { return now }
		s.Step("Bake %d loaves", 2)
		now = now.Add(1500 * time.Millisecond)
		s.Progress("the oven is %s", "hot")
		s.Done("2 loaves")
		s.Step("Sell them")
		s.Skipped("it is Sunday")
		now = now.Add(100 * time.Second)
		s.Done("no customers")
		s.Print("closed")
	}
	tests := map[string]struct {
		color bool
		want  string
	}{
		"pipe": {want: `▸ Bake 2 loaves
   1.50s · the oven is hot
   1.50s ✓ 2 loaves

▸ Sell them
   0.00s - skipped: it is Sunday
 100.00s ✓ no customers
closed
`},
		"terminal": {color: true, want: `{36m▸{0m {1mBake 2 loaves{0m
{2m   1.50s{0m {2m·{0m the oven is hot
{2m   1.50s{0m {32m✓{0m 2 loaves

{36m▸{0m {1mSell them{0m
{2m   0.00s{0m {33m-{0m skipped: it is Sunday
{2m 100.00s{0m {32m✓{0m no customers
closed
`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			s := New(&out)
			s.color = tc.color
			script(s)
			if diff := cmp.Diff(tc.want, strings.ReplaceAll(out.String(), "\x1b[", "{")); diff != "" {
				t.Errorf("screen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"/tmp/trueup-1/kubeconfig": "/tmp/trueup-1/kubeconfig",
		"":                         "''",
		"/home/a b/c":              "'/home/a b/c'",
		"it's":                     `'it'\''s'`,
		"$HOME":                    "'$HOME'",
	} {
		if got := Quote(text); got != want {
			t.Errorf("Quote(%q) = %s, want %s", text, got, want)
		}
	}
}
