// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

// mutant is a place of the sample.
type mutant struct {
	File     string
	Function string
	Kind     kind
	// Nth counts the places of the same kind in the function, from 1.
	Nth int
	// Text is the source at the place. It is not part of the identity, but must be unchanged.
	Text string
	// Killer is the test that killed the mutant, with its package. It is empty for a survivor.
	Killer string

	line int
}

// choose returns mutants of all kinds in turn, in as many functions as possible.
func choose(points []point, count int, seed uint64) []mutant {
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	var chosen []mutant
	used := make(map[mutant]bool)
	functions := make(map[string]bool)
	for _, again := range []bool{false, true} {
		for found := true; found && len(chosen) < count; {
			found = false
			for _, k := range kinds {
				for _, p := range points {
					function := p.File + " " + p.Function
					if p.Kind != k || used[p.mutant] || functions[function] && !again || len(chosen) == count {
						continue
					}
					used[p.mutant], functions[function], found = true, true, true
					chosen = append(chosen, p.mutant)
					break
				}
			}
		}
	}
	return chosen
}

// header explains the columns.
const header = "# file\tfunction\tmutation\tnth\tsource\tkiller\n"

func readSample(file string) ([]mutant, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var sample []mutant
	for i, line := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 6 {
			return nil, fmt.Errorf("%s:%d: got %d columns, want 6", file, i+1, len(columns))
		}
		nth, err := strconv.Atoi(columns[3])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		killer := columns[5]
		if killer == survived {
			killer = ""
		}
		sample = append(sample, mutant{
			File: columns[0], Function: columns[1], Kind: kind(columns[2]), Nth: nth, Text: columns[4], Killer: killer,
		})
	}
	return sample, nil
}

// survived stands for the killer of a survivor.
const survived = "-"

func writeSample(file string, sample []mutant) error {
	var b strings.Builder
	b.WriteString(header)
	for _, m := range sample {
		killer := m.Killer
		if killer == "" {
			killer = survived
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\t%d\t%s\t%s\n", m.File, m.Function, m.Kind, m.Nth, m.Text, killer)
	}
	return os.WriteFile(file, []byte(b.String()), 0o600)
}
