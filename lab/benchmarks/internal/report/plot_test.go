// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/lab/benchmarks/internal/report"
)

// readSVG returns the texts of a picture and the number of each of its elements. It fails the test if the picture is
// not well-formed.
func readSVG(t *testing.T, path string) (texts []string, elements map[string]int) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	elements = map[string]int{}
	for decoder := xml.NewDecoder(file); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts, elements
		}
		if err != nil {
			t.Fatalf("%s is not well-formed: %v", path, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			elements[token.Name.Local]++
		case xml.CharData:
			if text := strings.TrimSpace(string(token)); text != "" {
				texts = append(texts, text)
			}
		}
	}
}

func TestRun_Draw(t *testing.T) {
	run := measured()
	for i := range run.Workloads[0].Medians {
		delete(run.Workloads[0].Medians[i].Values, stray.Name)
	}
	dir := t.TempDir()
	names, err := run.Draw(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(
		[]string{"converge-wall-to-converge.svg", "converge-api-writes-per-parent.svg"}, names,
	); diff != "" {
		t.Fatalf("pictures (-want +got):\n%s", diff)
	}
	texts, elements := readSVG(t, filepath.Join(dir, names[0]))
	for _, want := range []string{
		"converge: wall to converge (s)", "parents", "500", "20,000", "10", "20", report.HandWritten, report.Trueup,
	} {
		if !slices.Contains(texts, want) {
			t.Errorf("the picture does not contain %q, only %q", want, texts)
		}
	}
	if elements["svg"] != 1 || elements["path"] < 10 {
		t.Errorf("the picture has too few elements: %v", elements)
	}
}

func TestRun_DrawPartlyZero(t *testing.T) {
	dir := t.TempDir()
	if _, err := measured().Draw(dir); err != nil {
		t.Fatal(err)
	}
	texts, _ := readSVG(t, filepath.Join(dir, "converge-stray-writes.svg"))
	if slices.Contains(texts, report.HandWritten) || !slices.Contains(texts, report.Trueup) {
		t.Errorf("only %s has values to draw, the picture contains %q", report.Trueup, texts)
	}
}

func TestRun_DrawNoDirectory(t *testing.T) {
	if _, err := measured().Draw(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want one that names the missing directory", err)
	}
}
