// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"os"
	"strings"

	"github.com/fatih/color"
)

// The colors of a difference. They print plain text unless the environment variable COLOR_DIFF is set, to any value,
// when the program starts. The output need not be a terminal: that of `go test` never is.
var (
	// DiffAddedColor is the color of lines that were observed and not expected.
	DiffAddedColor = diffColor(color.FgGreen)
	// DiffRemovedColor is the color of lines that were expected and not observed.
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
// those that start with - in [DiffRemovedColor]. Every line ends with a newline, also the last one.
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
