// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The release has what sandbox downloads: one compressed file for each program and platform, and the checksums.
func TestRelease(t *testing.T) {
	const root = "../../.."
	var release struct {
		Builds []struct {
			ID, Dir, Main, Binary string
			Goos, Goarch          []string
		}
		Archives []struct {
			IDs          []string
			Formats      []string
			NameTemplate string `json:"name_template"`
		}
		Checksum struct {
			NameTemplate string `json:"name_template"`
			Algorithm    string
		}
	}
	content, err := os.ReadFile(filepath.Join(root, ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, &release); err != nil {
		t.Fatal(err)
	}
	if len(release.Builds) != 2 || len(release.Archives) != len(release.Builds) {
		t.Fatalf("got %d builds and %d archives, want 2", len(release.Builds), len(release.Archives))
	}
	for i, build := range release.Builds {
		if _, err := os.Stat(filepath.Join(root, build.Dir, build.Main, "main.go")); err != nil {
			t.Errorf("%s: %v", build.ID, err)
		}
		if build.Binary != filepath.Base(build.Main) {
			t.Errorf("%s: the binary is named %s", build.Main, build.Binary)
		}
		archive := release.Archives[i]
		if strings.Join(archive.IDs, " ") != build.ID || strings.Join(archive.Formats, " ") != "gz" {
			t.Errorf("%s: packed as %+v, want a file compressed with gzip", build.ID, archive)
		}
		// docs/ci.md shows this name as trueup-controlplane_{os}_{arch}.gz.
		if want := "{{ .Binary }}_{{ .Os }}_{{ .Arch }}"; archive.NameTemplate != want {
			t.Errorf("%s: name_template is %q, want %q", build.ID, archive.NameTemplate, want)
		}
	}
	if release.Checksum.NameTemplate != "checksums.txt" || release.Checksum.Algorithm != "sha256" {
		t.Errorf("checksum: got %+v", release.Checksum)
	}

	var workflow struct {
		Name        string
		On          struct{ Push struct{ Tags []string } }
		Permissions map[string]string
		Jobs        map[string]struct {
			RunsOn         string `json:"runs-on"`
			TimeoutMinutes int    `json:"timeout-minutes"`
			Steps          []map[string]any
		}
	}
	content, err = os.ReadFile(filepath.Join(root, ".github", "workflows", "release.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, &workflow); err != nil {
		t.Fatal(err)
	}
	if strings.Join(workflow.On.Push.Tags, " ") != "v*" || len(workflow.Jobs["release"].Steps) == 0 {
		t.Errorf("release.yaml: got %+v", workflow)
	}
}
