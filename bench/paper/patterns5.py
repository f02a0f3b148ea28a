# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figure 5 of the paper on communication patterns: many threads send requests to one."""

from paper import SIM, Verdict, canvas

TITLE = "Communication patterns, figure 5: private connections to one responder"
CLAIM = ("With responses of 4 KiB, 16 requesters that use WRITE fill the link, and requesters "
         "that use SEND stay between 8 and 9.5 GB/s. With 16 KiB all fill it. More connections "
         "make no difference.")
FABRICS = (SIM,)
SCENARIO = "n-to-one"
BYTES = (64, 256, 4096, 16384)
LINK_MB = 12121  # of EDR, 96.97 Gbit/s
FULL = 0.95  # of the link


def rates(source, by=""):
    """MB/s by bytes of a response, requesters and design."""
    data = {}
    for size in BYTES:
        rows = source.simulated(SCENARIO, f"Responses of {size} bytes{by}, MB/s")
        data[size] = {int(count): {name: row[count] for name, row in rows.items()}
                      for count in rows["WriteWrite"]}
    return data


def measure(source, on):
    return rates(source)


def draw(figure, data):
    for axes, (size, of_size) in zip(canvas.panels(figure, len(data)), data.items()):
        canvas.lines(axes, of_size, f"responses of {size} bytes", "requesters", "MB/s")


def by_request(row, verb):
    """Of the designs in which the request goes by this verb."""
    return [rate for name, rate in row.items() if name.startswith(verb)]


def judge(data):
    at_16, most = data[4096][16], list(data[4096])[-1]
    writes, sends = by_request(at_16, "Write"), by_request(at_16, "Send")
    equal = max(abs(data[size][most][name] / rate - 1) for size in BYTES
                for name, rate in data[size][16].items())
    return [
        Verdict("4 KiB, by WRITE: 16 requesters fill the link", min(writes) > FULL * LINK_MB,
                f"They have {min(writes):,} to {max(writes):,} MB/s."),
        Verdict("4 KiB, by SEND: between 8 and 9.5 GB/s", 8000 <= min(sends) and max(sends) <= 9500,
                f"They have {min(sends):,} to {max(sends):,} MB/s."),
        Verdict("16 KiB: all fill the link", min(data[16384][16].values()) > FULL * LINK_MB,
                f"The least is {min(data[16384][16].values()):,} MB/s."),
        Verdict("more connections make no difference", equal < 0.05,
                f"From 16 to {most} they make {100 * equal:.0f} % at most."),
    ]
