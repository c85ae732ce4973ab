#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What is in the artefacts? Writes SPDX 2.3 (JSON), from what libraries.sh prints, to standard output.

Usage: libraries.sh BINARY BUILD | sbom.py VERSION REVISION SECONDS [HOST_PACKAGE...]
SECONDS (since 1970) is the document's creation time. A HOST_PACKAGE is loaded from the host and not shipped.
"""
import datetime
import json
import re
import sys
import uuid
from urllib.parse import quote


def identifier(name):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", lambda match: f"-{ord(match[0]):x}-", name)


def described(name, version, licence, **more):
    return {"SPDXID": identifier(name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more}


def of_debian(name, version, source, source_version):
    place = f"pkg:deb/debian/{quote(name)}@{quote(version)}"
    return described(name, version, "NOASSERTION", supplier="Organization: Debian",
                     sourceInfo=f"Debian's source package {source} {source_version}",
                     externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": place}])


def document(lines, version, revision, seconds, of_host):
    ours = described("ssdpulse", version, "Apache-2.0 AND (BSD-2-Clause OR GPL-2.0-only)", sourceInfo=f"revision {revision}")
    packages, links = {"ssdpulse": ours}, [("SPDXRef-DOCUMENT", "DESCRIBES", "ssdpulse")]
    rows = [line.split("\t") for line in lines]
    shared = {source for how, _, _, source, _, _ in rows if how == "shared"}
    for how, name, number, source, source_number, _ in rows:
        if name in packages:
            continue
        packages[name] = of_debian(name, number, source, source_number)
        if how == "headers":
            # For a library that is also shared, the headers only say how to call it; otherwise they are the library.
            link = "STATIC_LINK" if source not in shared else "DEV_DEPENDENCY_OF"
        else:
            link = "DEPENDS_ON" if name in of_host else "DYNAMIC_LINK"
        links.append((name, link, "ssdpulse") if link.endswith("_OF") else ("ssdpulse", link, name))
    listed = sorted(packages.values(), key=lambda package: (package["name"] != "ssdpulse", package["name"]))
    content = json.dumps(listed)
    reference = lambda name: name if name.startswith("SPDXRef-") else identifier(name)  # noqa: E731
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"ssdpulse-{version}",
        "documentNamespace": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, f'ssdpulse {version} {revision} {content}')}",
        "creationInfo": {"created": datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": [f"Tool: ssdpulse-sbom-{version}"]},
        "packages": listed,
        "relationships": [{"spdxElementId": reference(one), "relationshipType": link, "relatedSpdxElement": reference(other)}
                          for one, link, other in sorted(links)],
    }


def main():
    version, revision, seconds, *of_host = sys.argv[1:]
    lines = sys.stdin.read().splitlines()
    if not lines:
        sys.exit("sbom.py: no library on the standard input")
    json.dump(document(lines, version, revision, int(seconds), of_host), sys.stdout, indent=1)
    print()


main()
