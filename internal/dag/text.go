package dag

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
)

// A path counts as a machine's only at the start of a word, so that home-work/… or a URL's path is none.
var (
	machinePath  = regexp.MustCompile(`(?:^|[^\w.-])(/(?:(?:work|root)/|tmp/\w)[\w./-]*)`)
	registryHost = regexp.MustCompile(`\b(?:(?:proxy|sum)\.golang\.org|goproxy\.(?:io|cn)|pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|` +
		`yarnpkg\.com|crates\.io|rubygems\.org|maven\.org|maven\.apache\.org|nuget\.org|packagist\.org|anaconda\.org)\b`)
)

// CheckText reports each line of the named text files that holds a path of the machine it was written on, or (go.sum aside)
// a host of a package registry. Files that aren't text are passed over.
func CheckText(fsys fs.FS, files []string) ([]string, error) {
	var problems []string
	for _, name := range files {
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 { // git's own test for a binary file
			continue
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			if m := machinePath.FindSubmatch(line); m != nil {
				problems = append(problems, fmt.Sprintf("%s:%d: %s is a path of one machine: use a relative path, t.TempDir(), mktemp or a setting", name, i+1, m[1]))
			}
			if m := registryHost.Find(line); m != nil && path.Base(name) != "go.sum" {
				problems = append(problems, fmt.Sprintf("%s:%d: %s is a package registry: leave hosts to the user's own configuration", name, i+1, m))
			}
		}
	}
	return problems, nil
}
