// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"os"
	"strings"

	"github.com/fatih/color"
)

// The colors of a difference. They print plain text unless the environment has COLOR_DIFF when the program starts. Its
// value does not matter, nor does it matter whether the output is a terminal: the output of `go test` never is.
var (
	// DiffAddedColor is for lines that were observed and not expected.
	DiffAddedColor = diffColor(color.FgGreen)
	// DiffRemovedColor is for lines that were expected and not observed.
	DiffRemovedColor = diffColor(color.FgRed)
)

func diffColor(attribute color.Attribute) *color.Color {
	c := color.New(attribute)
	if _, ok := os.LookupEnv("COLOR_DIFF"); ok {
		c.EnableColor()
	} else {
		c.DisableColor()
	}
	return c
}

// ColorizeDiff colors the lines of a difference as cmp.Diff returns it: those that start with + in [DiffAddedColor],
// those that start with - in [DiffRemovedColor]. Every line is followed by a newline, also the last one.
func ColorizeDiff(diff string) string {
	var colored strings.Builder
	for line := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(line, "+"):
			line = DiffAddedColor.Sprint(line)
		case strings.HasPrefix(line, "-"):
			line = DiffRemovedColor.Sprint(line)
		}
		colored.WriteString(line)
		colored.WriteString("\n")
	}
	return colored.String()
}
