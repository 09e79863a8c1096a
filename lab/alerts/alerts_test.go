// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"trueup.dev/observe/metrics"
)

var promql = parser.NewParser(parser.Options{})

// targetLabels are labels that Prometheus adds to all series of a target.
var targetLabels = []string{"namespace", "job"}

var description = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// registered returns the labels of all metrics, by the names of their series.
func registered(t *testing.T) map[string][]string {
	t.Helper()
	metrics.Default()
	described := make(chan *prometheus.Desc)
	go func() {
		defer close(described)
		ctrlmetrics.Registry.(prometheus.Collector).Describe(described)
	}()
	found := map[string][]string{}
	for d := range described {
		match := description.FindStringSubmatch(d.String())
		if match == nil {
			t.Fatalf("unknown form of a description: %s", d)
		}
		name, names := match[1], strings.Split(match[2], ",")
		found[name] = names
		if strings.HasSuffix(name, "_seconds") {
			found[name+"_sum"], found[name+"_count"] = names, names
			found[name+"_bucket"] = append(slices.Clone(names), "le")
		}
	}
	return found
}

// problems returns what is wrong with an expression.
func problems(registry map[string][]string, expression string) []string {
	parsed, err := promql.ParseExpr(expression)
	if err != nil {
		return []string{err.Error()}
	}
	var found, allowed []string
	parser.Inspect(parsed, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		known, ok := registry[selector.Name]
		if !ok {
			found = append(found, selector.Name+" does not exist")
			return nil
		}
		allowed = append(allowed, known...)
		for _, m := range selector.LabelMatchers {
			if m.Name != model.MetricNameLabel && !slices.Contains(known, m.Name) {
				found = append(found, selector.Name+" does not have the label "+m.Name)
			}
			if m.Type == labels.MatchEqual && m.Value == "" {
				found = append(found, selector.Name+" matches an empty "+m.Name)
			}
		}
		for _, outer := range path {
			call, ok := outer.(*parser.Call)
			counts := strings.HasSuffix(selector.Name, "_total") || known != nil && regexp.MustCompile(
				`_(sum|count|bucket)$`).MatchString(selector.Name)
			if ok && (call.Func.Name == "rate" || call.Func.Name == "increase") && !counts {
				found = append(found, call.Func.Name+" of "+selector.Name+", which is not a counter")
			}
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if aggregation, ok := node.(*parser.AggregateExpr); ok {
			for _, label := range aggregation.Grouping {
				if !slices.Contains(allowed, label) && !slices.Contains(targetLabels, label) {
					found = append(found, "no metric has the label "+label)
				}
			}
		}
		return nil
	})
	return found
}

func TestRulesAreValid(t *testing.T) {
	content, err := os.ReadFile("../../docs/operating/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// Parse also checks names, durations and templates.
	groups, errs := rulefmt.Parse(content, false, model.UTF8Validation, promql)
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		t.FailNow()
	}
	registry, checked := registered(t), 0
	label := regexp.MustCompile(`\$labels\.(\w+)`)
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			checked++
			for _, problem := range problems(registry, rule.Expr) {
				t.Errorf("%s: %s", rule.Alert, problem)
			}
			if rule.Annotations["summary"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%s: summary and severity are required", rule.Alert)
			}
			for _, text := range rule.Annotations {
				for _, used := range label.FindAllStringSubmatch(text, -1) {
					if !keeps(registry, rule.Expr, used[1]) {
						t.Errorf("%s: the result of the expression does not have the label %s", rule.Alert, used[1])
					}
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("checked only %d rules", checked)
	}
}

// keeps reports whether the results of an expression have a label: an aggregation keeps only the labels that it names.
func keeps(registry map[string][]string, expression, label string) bool {
	parsed, err := promql.ParseExpr(expression)
	if err != nil {
		return false
	}
	keeps := true
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.AggregateExpr:
			keeps = keeps && slices.Contains(n.Grouping, label)
		case *parser.VectorSelector:
			keeps = keeps && slices.Contains(registry[n.Name], label)
		}
		return nil
	})
	return keeps
}

func TestDashboardIsValid(t *testing.T) {
	content, err := os.ReadFile("../../docs/operating/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	// Grafana replaces its variables before it sends an expression.
	variables := strings.NewReplacer("$__rate_interval", "5m", "$controller", ".*")
	registry, checked := registered(t), 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			checked++
			for _, problem := range problems(registry, variables.Replace(target.Expr)) {
				t.Errorf("%s: %s in %s", panel.Title, problem, target.Expr)
			}
		}
	}
	if checked < 15 {
		t.Errorf("checked only %d expressions", checked)
	}
}

// Each row of the table of metrics in the guide from the Grafana App SDK has a query that Prometheus parses, and names
// metrics that exist.
func TestMetricsOfMigrationGuideAreValid(t *testing.T) {
	const guide = "migration/grafana-app-sdk.md"
	content, err := os.ReadFile("../../docs/" + guide)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n### Metrics\n")
	section, _, _ = strings.Cut(section, "\n### ")
	registry, checked := registered(t), 0
	quoted := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		if !strings.HasPrefix(line, "| ") || cells[0] == "App SDK" {
			continue
		}
		if len(cells) != 3 {
			t.Fatalf("%s: the row of %s has %d cells", guide, cells[0], len(cells))
		}
		checked++
		for _, name := range quoted.FindAllStringSubmatch(cells[1], -1) {
			if _, ok := registry[name[1]]; !ok && registry[name[1]+"_count"] == nil {
				t.Errorf("%s: %s: %s does not exist", guide, cells[0], name[1])
			}
		}
		if cells[2] == "as above" {
			continue
		}
		query := quoted.FindStringSubmatch(cells[2])
		if query == nil {
			t.Errorf("%s: %s has no query", guide, cells[0])
			continue
		}
		for _, problem := range problems(registry, query[1]) {
			t.Errorf("%s: %s: %s in %s", guide, cells[0], problem, query[1])
		}
	}
	if checked < 14 {
		t.Errorf("%s: checked only %d rows", guide, checked)
	}
}

// TestProblemsAreFound checks the checks.
func TestProblemsAreFound(t *testing.T) {
	registry := registered(t)
	for expression, want := range map[string]string{
		`trueup_failing_objects`:                                 "",
		`sum by (`:                                               "parse error",
		`trueup_failing`:                                         "trueup_failing does not exist",
		`trueup_failing_objects{kind="A"}`:                       "does not have the label kind",
		`sum by (kind) (trueup_failing_objects)`:                 "no metric has the label kind",
		`rate(trueup_failing_objects[5m])`:                       "which is not a counter",
		`trueup_failing_objects{step=""}`:                        "matches an empty step",
		`rate(trueup_step_duration_seconds_count{step="A"}[5m])`: "",
		`sum by (le) (trueup_step_duration_seconds_bucket)`:      "",
		`trueup_failing_objects_bucket`:                          "does not exist",
	} {
		got := strings.Join(problems(registry, expression), "; ")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", expression, got, want)
		}
	}
}
