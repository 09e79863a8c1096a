// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"trueup.dev/observe"
	"trueup.dev/observe/logs"
	"trueup.dev/observe/metrics"
	"trueup.dev/reconcilers"
)

func AddMetrics(mgr ctrl.Manager) {
	// region operating-metrics
	observe.Of(mgr).Add(metrics.Default()) // or Remove
	// endregion
}

func AddLogs(mgr ctrl.Manager) {
	// region operating-logs
	observe.Of(mgr).Add(logs.New(mgr.GetLogger(), logs.Options{Verbosity: 1}))
	// endregion
}

func FairConfig(mgr ctrl.Manager) reconcilers.Config {
	// region operating-fair
	config := reconcilers.NewConfig(mgr, nil, 10*time.Hour)
	config.FairNamespaces = true
	// endregion
	return config
}

var description = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// registered returns the labels of all metrics, by name.
func registered(t *testing.T) map[string]string {
	t.Helper()
	metrics.Default()
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		ctrlmetrics.Registry.(prometheus.Collector).Describe(described)
	}()
	labels := map[string]string{}
	for d := range described {
		match := description.FindStringSubmatch(d.String())
		if match == nil {
			t.Fatalf("unknown form of a description: %s", d)
		}
		labels[match[1]] = strings.ReplaceAll(match[2], ",", ", ")
	}
	return labels
}

// TestOperatingListsMetrics compares the tables of the guide with the registry.
func TestOperatingListsMetrics(t *testing.T) {
	registry := registered(t)
	rows := regexp.MustCompile("(?m)^\\| `([a-z]+_[a-z_]+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]*)\\|$")
	listed := map[string]string{}
	for _, row := range rows.FindAllStringSubmatch(readFile(t, "operating.md"), -1) {
		if _, ok := listed[row[1]]; ok {
			t.Errorf("%s is listed twice", row[1])
		}
		listed[row[1]] = row[2]
		if strings.HasPrefix(row[1], "trueup_") && strings.TrimSpace(row[4]) == "" {
			t.Errorf("%s: the guide does not say what to do", row[1])
		}
	}
	want := map[string]string{}
	for name, labels := range registry {
		if _, ok := listed[name]; ok || strings.HasPrefix(name, "trueup_") {
			want[name] = labels
		}
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("metrics in operating.md, with their labels (-registry +guide):\n%s", diff)
	}
	if len(want) < 20 {
		t.Errorf("found only %d metrics", len(want))
	}
}

// otherDirectories contain no packages of the library.
var otherDirectories = []string{"docs", "controlplane", "lab", ".git"}

// TestAllMetricsAreRegistered finds metrics in packages that the test of the guide does not import.
func TestAllMetricsAreRegistered(t *testing.T) {
	registry := registered(t)
	found := 0
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(otherDirectories, path):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		for _, match := range regexp.MustCompile(`Name:\s+"(trueup_[a-z_]+)"`).FindAllStringSubmatch(readFile(t, "../"+path), -1) {
			found++
			if _, ok := registry[match[1]]; !ok {
				t.Errorf("%s: %s is not registered: import its package in this test", path, match[1])
			}
		}
		return nil
	})
	if err != nil || found < 20 {
		t.Errorf("found %d metrics: %v", found, err)
	}
}

// metricName matches the metrics of the guide in expressions of PromQL.
var metricName = regexp.MustCompile(`\b(?:trueup|controller_runtime|workqueue|rest_client)_[a-z_]+`)

// checkExpression reports metrics that do not exist. Package lab/alerts parses the expressions.
func checkExpression(t *testing.T, registry map[string]string, where, expression string) {
	t.Helper()
	names := metricName.FindAllString(expression, -1)
	if len(names) == 0 {
		t.Errorf("%s: no metric in %s", where, expression)
	}
	for _, name := range names {
		_, ok := registry[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if histogram, isSuffix := strings.CutSuffix(name, suffix); isSuffix {
				_, ok = registry[histogram]
			}
		}
		if !ok {
			t.Errorf("%s: %s does not exist", where, name)
		}
	}
}

type dashboard struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ H, W, X, Y int }
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct {
			Name  string
			Type  string
			Query any
		}
	}
}

func TestDashboardShowsMetricsThatExist(t *testing.T) {
	registry := registered(t)
	d := dashboard{}
	if err := json.Unmarshal([]byte(readFile(t, "operating/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	for _, variable := range d.Templating.List {
		if variable.Type == "query" {
			checkExpression(t, registry, "variable "+variable.Name, fmt.Sprint(variable.Query))
		}
	}
	expressions, ids := 0, map[int]bool{}
	for _, panel := range d.Panels {
		if ids[panel.ID] {
			t.Errorf("two panels have the ID %d", panel.ID)
		}
		ids[panel.ID] = true
		if panel.GridPos.X+panel.GridPos.W > 24 || panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %q is too wide or empty", panel.Title)
		}
		for _, target := range panel.Targets {
			expressions++
			checkExpression(t, registry, panel.Title, target.Expr)
		}
	}
	if expressions < 15 {
		t.Errorf("found only %d expressions", expressions)
	}
}

// TestAlertsAreExplained compares the alerts of the rule file with the alerts of the guide.
func TestAlertsAreExplained(t *testing.T) {
	registry := registered(t)
	alerts := readFile(t, "operating/alerts.yaml")
	names := func(pattern, text string) (found []string) {
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			found = append(found, match[1])
		}
		return found
	}
	defined := names(`(?m)^ +- alert: (\w+)$`, alerts)
	explained := names("(?m)^\\| `(Trueup\\w+)` \\|", readFile(t, "operating.md"))
	if diff := cmp.Diff(defined, explained); diff != "" || len(defined) < 10 {
		t.Errorf("alerts (-alerts.yaml +operating.md):\n%s", diff)
	}
	checkExpression(t, registry, "alerts.yaml", alerts)
}
