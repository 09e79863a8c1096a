package converge_test

import (
	"os"
	"testing"

	"trueup.dev/converge"
	"trueup.dev/converge/corpus"
)

func TestTmpPages(t *testing.T) {
	os.MkdirAll("/tmp/reps", 0o755)
	for _, e := range corpus.All() {
		if e.Buggy == nil {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			r, err := converge.Check(t, e.Buggy(), converge.Options{Recoveries: 300, Pairs: 300, Seed: 1})
			if err != nil || r.Failure == nil {
				t.Skip(err)
			}
			b, err := r.Failure.HTML()
			if err != nil {
				t.Fatal(err)
			}
			os.WriteFile("/tmp/reps/"+e.Name+".html", b, 0o644)
		})
	}
}
