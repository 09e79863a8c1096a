// SPDX-License-Identifier: Apache-2.0

package mutation_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"fmt"
	"time"

	"trueup.dev/converge"
	"trueup.dev/converge/corpus"
	"trueup.dev/converge/corpus/mutation"
)

var only = flag.String("only", "", "")
var rec = flag.Int("rec", 1000, "")
var list = flag.Bool("list", false, "")

func TestAllTmp(t *testing.T) {
	for _, e := range corpus.All() {
		if !strings.Contains(e.Name, *only) { continue }
		mutants, err := mutation.Of(t, e)
		if err != nil {
			fmt.Println("ERR", err)
			continue
		}
		for _, m := range mutants {
			if *list { fmt.Println("M", m.Name()); continue }
			begin := time.Now()
			r, err := m.Check(t, converge.Options{Seed: 1, Recoveries: *rec, Pairs: *rec})
			if err != nil { fmt.Println("ERR", err); continue }
			fmt.Fprintln(os.Stdout, "R", r.Killed, r.Equivalent, r.Faults, r.Name, "|", r.By, time.Since(begin).Round(time.Millisecond))
		}
	}
}
